"""The script of the model: turns of text, thoughts and tool calls, for the main thread and for sub-agents."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from msgspec import Struct


class Say(Struct, frozen=True, tag="say"):
    """Text for the user."""

    text: str


class Think(Struct, frozen=True, tag="think"):
    """A thought, which the model signs."""

    text: str


class Call(Struct, frozen=True, tag="call"):
    """A call of one of the client's own tools. Text as input makes a free-form call, where the protocol has them."""

    name: str
    input: dict[str, Any] | str
    space: str = ""
    """The namespace of the tool, where the protocol has them."""


class Usage(Struct, frozen=True):
    """Tokens of one call: `input` without cached ones, `output` with reasoning."""

    input: int = 120
    cached: int = 500
    written: int = 0
    output: int = 42
    reasoning: int = 10


class Turn(Struct, frozen=True):
    """One answer of the model."""

    steps: tuple[Say | Think | Call, ...]
    usage: Usage = Usage()
    after: str = ""
    """A text that the newest entries of the request must contain; the model refuses the request otherwise."""


class Script(Struct, frozen=True):
    """The turns of the main thread, and those of sub-agents by a text of their task."""

    turns: tuple[Turn, ...] = ()
    agents: dict[str, tuple[Turn, ...]] = {}
    answers_forever: bool = False
    """Whether a request after the last turn is answered with `DONE`, not refused."""


DONE = Turn((Say("done"),))


def turn(*steps: Say | Think | Call, after: str = "", usage: Usage | None = None) -> Turn:
    """A turn, written short."""
    return Turn(steps, usage or Usage(), after)


def sign(thought: str) -> str:
    """The signature of a thought: opaque to clients, and the model knows its own."""
    return base64.b64encode(b"lab:" + hashlib.sha256(thought.encode()).digest()).decode()


def is_signature(text: object) -> bool:
    """Whether this model made the signature."""
    try:
        return isinstance(text, str) and base64.b64decode(text, validate=True).startswith(b"lab:")
    except ValueError:
        return False
