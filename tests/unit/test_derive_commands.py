"""Slash commands and the output of local commands."""

from pathlib import Path

import pytest

from clew.analysis.commands import Command, CommandOutput, find_commands, parse_command, parse_output
from tests.unit.samples import chain, read_lines, say, seed

COMMAND = "<command-name>/ide</command-name>\n<command-message>ide</command-message>\n<command-args></command-args>"


@pytest.mark.seed("S3-9")
@pytest.mark.parametrize(
    ("text", "command"),
    [
        (COMMAND, Command("/ide", "ide", "")),
        (
            "<command-message>init is running</command-message>\n<command-name>/init</command-name>",
            Command("/init", "init is running", None),
        ),
        (
            "<command-name>/x</command-name>\n   <command-message>x</command-message>\n"
            "   <command-args>a </command-args> <command-name>b</command-args>",
            Command("/x", "x", "a </command-args> <command-name>b"),
        ),
        ("<command-name>/clear</command-name>", Command("/clear", None, None)),
        ("<command-args>é ü</command-args><command-name>/n</command-name>", Command("/n", None, "é ü")),
    ],
)
def test_a_command_is_parsed(text: str, command: Command) -> None:
    assert parse_command(text) == command


@pytest.mark.parametrize(
    "text",
    [
        "",
        "what does <command-name>/ide</command-name> mean?",
        "<command-message>no name</command-message>",
        "<command-name>never closed",
        "</command-name><command-name>",
    ],
)
def test_words_about_commands_are_no_command(text: str) -> None:
    assert parse_command(text) is None


@pytest.mark.seed("S3-9")
def test_the_example_record_is_a_command_and_keeps_its_text(tmp_path: Path) -> None:
    record = seed("seed-003/command")
    read = read_lines(tmp_path, record)
    runs = find_commands(read.messages).runs
    assert [run.command for run in runs] == [Command("/ide", "ide", "")]
    assert read.messages[0]["content"] == [{"type": "text", "text": record["message"]["content"]}]
    assert read.facts.prompts == 0


@pytest.mark.seed("S3-25")
def test_output_belongs_to_the_command_above_it() -> None:
    messages = chain(
        say(1, "user", "<command-name>/cost</command-name>"),
        say(2, "user", "<local-command-stdout>12 $</local-command-stdout>"),
        say(3, "user", "<command-name>/exit</command-name>"),
        say(
            4,
            "system",
            "<local-command-stdout>Bye</local-command-stdout>\n<local-command-stderr>!</local-command-stderr>",
        ),
        say(5, "user", "<local-command-stderr>late</local-command-stderr>", parent_uuid="m2"),
    )
    found = find_commands(messages)
    assert [(run.index, run.command.name) for run in found.runs] == [(1, "/cost"), (3, "/exit")]
    assert found.runs[0].outputs == [(2, CommandOutput("12 $")), (5, CommandOutput(None, "late"))]
    assert found.runs[1].outputs == [(4, CommandOutput("Bye", "!"))]
    assert not found.orphans


@pytest.mark.seed("S3-25")
def test_output_without_a_chain_belongs_to_the_command_before_it() -> None:
    messages = [
        say(1, "user", "<command-name>/cost</command-name>"),
        say(2, "user", "<local-command-stdout></local-command-stdout>", parent_uuid="a progress record"),
        say(3, "user", "<local-command-stdout>of nobody</local-command-stdout>", parent_uuid=None),
    ]
    found = find_commands(messages)
    assert found.runs[0].outputs == [(2, CommandOutput(""))]
    assert found.orphans == [(3, CommandOutput("of nobody"))]


def test_output_is_recognised_only_where_it_begins_a_text() -> None:
    assert parse_output("see <local-command-stdout>x</local-command-stdout>") is None
    assert parse_output("<local-command-stdout>a</local-command-stdout> b") == CommandOutput("a")
