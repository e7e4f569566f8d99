"""The tokens of a plain transcript, seen at a glance. Whatever is not plain raises `Doubt`, and is for the careful.

Plain is a transcript of nothing but whole records, in which every reply that counts names itself, and its branch where
any is named.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from clew.derive.calls import UNKNOWN, Columns

SYNTHETIC = "<synthetic>"
SAID = frozenset({"assistant", "user", "system", "attachment"})


class Doubt(Exception):
    """The transcript is not plain."""


class Created(msgspec.Struct, gc=False):
    ephemeral_5m_input_tokens: int | None = UNKNOWN
    ephemeral_1h_input_tokens: int | None = UNKNOWN


class Details(msgspec.Struct, gc=False):
    thinking_tokens: int | None = UNKNOWN


class Usage(msgspec.Struct, gc=False):
    """What the first pass wants of it too, with a number for what is not told."""

    input_tokens: int | None = UNKNOWN
    output_tokens: int | None = UNKNOWN
    cache_creation_input_tokens: int | None = UNKNOWN
    cache_read_input_tokens: int | None = UNKNOWN
    cache_creation: Created | None = None
    output_tokens_details: Details | None = None


_NO_CREATED, _NO_DETAILS = Created(), Details()


class Message(msgspec.Struct, gc=False):
    id: str | None = None
    model: str | None = None
    usage: Usage | None = None


class Said(msgspec.Struct, gc=False):
    """What is wanted of every line."""

    type: str | None = None
    timestamp: str | int | float | None = None
    gitBranch: str | None = None
    isSidechain: bool | None = None
    message: Message | None = None


_decode_lines = msgspec.json.Decoder(Said).decode_lines


class Glance:
    """Sees lines, and keeps the first of each reply and what it used in the end."""

    def __init__(self) -> None:
        self._name: str | None = None
        """Of the reply that is under way."""
        self._firsts: list[Said] = []
        self._messages: list[Message] = []
        self._used: list[Usage] = []
        self.is_unnamed = False
        """True where a reply names no branch."""

    def read(self, text: bytes | memoryview, is_sidechain: bool) -> None:
        """Read lines, and see them; all that is said in a sidechain must be part of it."""
        lines = _decode_lines(text)
        if is_sidechain and not all(line.isSidechain or line.type not in SAID for line in lines):
            raise Doubt
        self.see(lines)

    def see(self, lines: Sequence[Said]) -> None:
        """See lines; those of one reply repeat what it used, or say more of it."""
        name, used = self._name, self._used
        for line in lines:
            if line.type == "assistant" and (message := line.message) is not None:
                usage, own = message.usage, message.id
                if usage is not None and own == name is not None:
                    if usage != used[-1]:
                        if not _grows(usage, used[-1]):
                            raise Doubt
                        used[-1] = usage
                elif message.model != SYNTHETIC:
                    if usage is None or not own:
                        raise Doubt
                    if not line.gitBranch:
                        self.is_unnamed = True
                    name = own
                    self._firsts.append(line)
                    self._messages.append(message)
                    used.append(usage)
        self._name = name

    def columns(self) -> Columns:
        """The calls, once all lines were seen."""
        used, messages = self._used, self._messages
        names = [message.id or "" for message in messages]
        if len(set(names)) != len(names):
            raise Doubt
        created = [usage.cache_creation or _NO_CREATED for usage in used]
        details = [usage.output_tokens_details or _NO_DETAILS for usage in used]
        counts = [
            [usage.input_tokens for usage in used],
            [usage.output_tokens for usage in used],
            [usage.cache_creation_input_tokens for usage in used],
            [usage.cache_read_input_tokens for usage in used],
            [parts.ephemeral_5m_input_tokens for parts in created],
            [parts.ephemeral_1h_input_tokens for parts in created],
            [parts.thinking_tokens for parts in details],
        ]
        if any(None in column for column in counts) or (UNKNOWN in counts[0] and UNKNOWN in counts[1]):
            raise Doubt
        models = [message.model or "" for message in messages]
        times, branches = [line.timestamp for line in self._firsts], [line.gitBranch for line in self._firsts]
        return Columns(names, models, times, branches, counts)  # type: ignore[arg-type]


def _grows(usage: Usage, before: Usage) -> bool:
    """True where the later of two counts of one reply leaves nothing out and takes nothing back."""
    return (
        usage.input_tokens == before.input_tokens
        and usage.cache_read_input_tokens == before.cache_read_input_tokens
        and usage.cache_creation_input_tokens == before.cache_creation_input_tokens
        and (UNKNOWN if usage.output_tokens is None else usage.output_tokens)
        >= (UNKNOWN if before.output_tokens is None else before.output_tokens)
        and usage.cache_creation == before.cache_creation
        and usage.output_tokens_details == before.output_tokens_details
    )
