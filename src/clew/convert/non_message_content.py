"""Words of a conversation that stand in records beside its messages."""

from __future__ import annotations

from collections.abc import Iterable

from clew.agents.target_profile import Aside
from clew.model.json import JSON

_MOST = 256
"""So many prompts wait for a message that holds them."""


class Asides:
    """Holds what records say until it is known whether a message says it too."""

    def __init__(self) -> None:
        self._near: list[Aside] = []
        self._prompts: list[Aside] = []
        self._before: dict[str, JSON] = {"content": []}

    def add(self, aside: Aside, holds: bool) -> None:
        """What a record says; `holds`: it stands behind a message that goes over."""
        if aside.waits:
            self._prompts = [*self._prompts[1 - _MOST :], aside]
        elif (holds or aside.begins) and not _says(_words_of(self._before), aside.marks):
            self._near.append(aside)

    def meet(self, message: dict[str, JSON], holds: bool) -> list[Aside]:
        """Take notice of the next message; gives what stood before it and nowhere else."""
        if self._prompts:
            text = _text_of(message)
            self._prompts = [aside for aside in self._prompts if not _is_sent(aside.text, text)]
        words = _words_of(message) if self._near else ""
        found = [aside for aside in self._near if (holds or not aside.begins) and not _says(words, aside.marks)]
        self._near = []
        return found

    def went(self, message: dict[str, JSON]) -> None:
        """A message goes over."""
        self._before = message

    def rest(self) -> list[Aside]:
        """What stood behind the last message, and the prompts that no message holds."""
        return [*self._near, *(aside._replace(text="") for aside in self._prompts)]


def _says(text: str, marks: Iterable[str]) -> bool:
    """True for a text that has all of the marks, if there are any."""
    wanted = [mark.strip() for mark in marks if mark.strip()]
    return bool(wanted) and all(mark in text for mark in wanted)


def _is_sent(prompt: str, text: str) -> bool:
    """True for a text that holds a prompt; a command is spelled in another way by the time it is sent."""
    words = prompt.split()
    return not words or prompt.strip() in text or (words[0].startswith("/") and words[0] in text)


def _text_of(message: dict[str, JSON]) -> str:
    return "\n".join(block["text"] for block in message["content"] if block["type"] == "text")


def _words_of(message: dict[str, JSON]) -> str:
    """What a message says, and what its model thought."""
    thoughts = [block["thinking"] for block in message["content"] if block["type"] == "thinking"]
    return "\n".join([_text_of(message), *thoughts])
