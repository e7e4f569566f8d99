"""Slash commands in messages, and what local commands printed. The text of a message is never changed."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from clew.analysis.messages import text_of
from clew.model.json import JSON

_NAME, _MESSAGE, _ARGS = "command-name", "command-message", "command-args"
_STDOUT, _STDERR = "local-command-stdout", "local-command-stderr"


class Command(msgspec.Struct, frozen=True):
    """A slash command as it was typed. None: the markup does not say; "" is an explicit nothing."""

    name: str
    message: str | None = None
    args: str | None = None


class CommandOutput(msgspec.Struct, frozen=True):
    """What a local command printed; a stream that was not recorded is None."""

    stdout: str | None = None
    stderr: str | None = None


class CommandRun(msgspec.Struct):
    """A command with the index of its message, and its outputs with theirs."""

    index: int
    command: Command
    outputs: list[tuple[int, CommandOutput]]


class CommandRuns(msgspec.Struct):
    """All commands of a session, and outputs whose command is not there."""

    runs: list[CommandRun]
    orphans: list[tuple[int, CommandOutput]]


def parse_command(text: str) -> Command | None:
    """The command that a text consists of; markup inside other text does not count."""
    if not text.lstrip().startswith((f"<{_NAME}>", f"<{_MESSAGE}>", f"<{_ARGS}>")):
        return None
    # Arguments are free text and may hold any markup, so they are taken out first.
    args, rest = _take(text, _ARGS)
    message, rest = _take(rest, _MESSAGE)
    name, _ = _take(rest, _NAME)
    return Command(name.strip(), message, args) if name is not None else None


def parse_output(text: str) -> CommandOutput | None:
    """The output of a local command a text consists of."""
    if not text.lstrip().startswith((f"<{_STDOUT}>", f"<{_STDERR}>")):
        return None
    stdout, rest = _take(text, _STDOUT)
    stderr, _ = _take(rest, _STDERR)
    return CommandOutput(stdout, stderr)


def _take(text: str, tag: str) -> tuple[str | None, str]:
    """What stands between the first opening and the last closing tag, and the text without it."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    begin, end = text.find(opening), text.rfind(closing)
    if begin < 0 or end < begin:
        return None, text
    return text[begin + len(opening) : end], text[:begin] + text[end + len(closing) :]


def find_commands(messages: Iterable[dict[str, JSON]]) -> CommandRuns:
    """Every command with the outputs that follow it on its chain."""
    found = CommandRuns([], [])
    above: dict[str, CommandRun | None] = {}
    for message in messages:
        run = _run_above(message, above, found.runs)
        text = text_of(message) if message["role"] != "assistant" else None
        command = parse_command(text) if text else None
        output = parse_output(text) if text and command is None else None
        if command is not None:
            run = CommandRun(message["index"], command, [])
            found.runs.append(run)
        elif output is not None:
            (run.outputs if run is not None else found.orphans).append((message["index"], output))
        if message.get("uuid") is not None:
            above[message["uuid"]] = run
    return found


def _run_above(
    message: dict[str, JSON], above: dict[str, CommandRun | None], runs: list[CommandRun]
) -> CommandRun | None:
    """The nearest command on the chain; where the parent is no message we know, the one before."""
    parent = message.get("parent_uuid")
    if parent in above:
        return above[parent]
    return runs[-1] if runs and (parent is not None or message.get("uuid") is None) else None
