"""What a writer learned that the metadata of its session should say."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import UNSET

from clew.model.json import JSON
from clew.store import metadata
from clew.store.layout import Redact
from clew.store.wire import Context, MessageRecord

_encode = msgspec.json.Encoder().encode
_BEGINNING = ("firstPrompt", "createdAt", "workingDirectory")


class News:
    """What this handle learned that the metadata should say."""

    def __init__(self, redact: Redact | None = None) -> None:
        self._redact = redact
        self.first: MessageRecord | None = None
        self.first_prompt: MessageRecord | None = None
        self.last: MessageRecord | None = None
        self.later: tuple[str, Context] | None = None
        """Time and surroundings of what came behind the last message that is held here."""
        self.last_prompt: MessageRecord | None = None
        self.model: JSON = None
        self.is_told = True
        """True when the metadata say all of it."""
        self._places: dict[str, int] = {}
        """Where prompts that are held here stand in the log, by uuid."""

    def note(self, record: MessageRecord, extra: dict[str, JSON] | None) -> None:
        """Remember a message."""
        if record.type == "user":
            self.last_prompt = record
        if self.first is None:
            self.first = record
        if self.first_prompt is None:
            self.first_prompt = self.last_prompt
        if extra and "model" in extra:
            self.model = extra["model"]

    def forget_erased(self, place_of: Callable[[bytes, int | None], int | None]) -> None:
        """Have no words any more that were erased from the log, as by another process; its lock is held."""
        held = {prompt.uuid: prompt for prompt in (self.first_prompt, self.last_prompt) if prompt is not None}
        found = {uuid: place_of(_beginning(prompt), self._places.get(uuid)) for uuid, prompt in held.items()}
        self._places = {uuid: place for uuid, place in found.items() if place is not None}
        if self.first_prompt is not None and self.first_prompt.uuid not in self._places:
            self.first_prompt = None
        if self.last_prompt is not None and self.last_prompt.uuid not in self._places:
            self.last_prompt = None

    def told(self, known: dict[str, JSON]) -> dict[str, JSON]:
        """The same in the words of the metadata; the beginning is as they have it."""
        if self.first is None or self.last is None:
            return {}
        time, context = self.later or (self.last.timestamp, self.last.context)
        news: dict[str, JSON] = {"createdAt": self.first.timestamp, "updatedAt": time}
        for name, record in (("firstPrompt", self.first_prompt), ("lastPrompt", self.last_prompt)):
            words = record.message.content if record is not None and record.message is not UNSET else None
            if isinstance(words, str):
                # Redacted while it is whole: of what is cut in two, neither half is known for what it is.
                news[name] = metadata.shortened(self._redact({"content": words})["content"] if self._redact else words)
        if context is not UNSET:
            news["workingDirectory"] = context.cwd
            news |= {"gitBranch": context.git_branch} if context.git_branch is not UNSET else {}
        if self.model is not None:
            news["model"] = self.model
        if str(known.get("updatedAt", "")) > str(news["updatedAt"]):
            del news["updatedAt"]  # the clock was set back
        return {**news, **{name: known[name] for name in _BEGINNING if known.get(name)}}


def _beginning(prompt: MessageRecord) -> bytes:
    """How the line of a prompt begins, as long as it is one."""
    return b'{"type":%b,"uuid":%b,' % (_encode(prompt.type), _encode(prompt.uuid))
