"""What is masked in pages. The person's own history, on their own machine: nothing, unless they say so."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from clew.library import StoredSession
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.redact.tree import Redactor

T = TypeVar("T")

NONE = "none"


class Masking:
    """Masks by one profile."""

    def __init__(self, profile: str) -> None:
        self.profile = profile

    @property
    def is_on(self) -> bool:
        """False where everything is shown."""
        return self.profile != NONE

    def redactor(self) -> Redactor:
        """A new one, which has seen nothing."""
        from clew.redact.setting import chosen
        from clew.redact.tree import Redactor

        return Redactor(chosen(self.profile))

    def session(self, session: StoredSession) -> StoredSession:
        """The session as it may be seen."""
        return session.redacted(self.redactor()) if self.is_on else session

    def text(self, text: str) -> str:
        """A text as it may be seen."""
        return str(self.redactor().once(text)) if self.is_on and text else text

    def value(self, value: JSON) -> JSON:
        """A value that stands alone."""
        return self.redactor().once(value) if self.is_on else value

    def learned(self, session: StoredSession) -> Redactor:
        """One that has seen a whole session."""
        from clew.agents.redacted import learn

        redactor = self.redactor()
        learn(session.agent, session.source, redactor)
        return redactor

    def record(self, session: StoredSession, raw: bytes) -> bytes:
        """A native record as it may be seen."""
        if not self.is_on:
            return raw
        from clew.redact.native import mask

        return mask(raw, self.learned(session))


@lru_cache
def masking(profile: str) -> Masking:
    """The masking of a profile."""
    return Masking(profile)
