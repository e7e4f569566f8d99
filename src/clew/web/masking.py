"""What is masked in pages. The person's own history, on their own machine: nothing, unless they say so."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from clew.host import config_dir
from clew.model.json import JSON
from clew.redact.masks import PLAIN
from clew.redact.settings import RULES_FILE, load_settings
from clew.stored_session import StoredSession

if TYPE_CHECKING:
    from clew.redact.redactor import Redactor, Setting

NONE = "none"
_SIGN = "~"
"""What the reference to a masked value begins with."""
_KEY = secrets.token_bytes(32)
_LENGTH = 24
"""Hexadecimal digits of a reference."""


class Manner(NamedTuple):
    """How is masked, whatever the profile."""

    plain: bool = False
    rules: Path | None = None


_manner = Manner()
_referred: dict[str, str] = {}
"""The values that references stand for. They are good while this process runs."""


def mask_by(manner: Manner) -> None:
    """Mask in this manner from now on, in all pages of this process."""
    global _manner
    _manner = manner


def manner() -> Manner:
    """How is masked now."""
    return _manner


_taught: ContextVar[Redactor | None] = ContextVar("taught", default=None)
"""One that knows what is secret in the session that a page is about."""


@contextmanager
def taught_by(redactor: Redactor | None) -> Iterator[None]:
    """Mask what is drawn meanwhile with what a session taught."""
    token = _taught.set(redactor)
    try:
        yield
    finally:
        _taught.reset(token)


def resolved(word: str) -> str:
    """The value that a reference stands for; anything else is what it is."""
    return _referred.get(word, word) if word.startswith(_SIGN) else word


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
        from clew.redact.redactor import Redactor

        return Redactor(_setting(self.profile, _manner, _state_of_rules()))

    def session(self, session: StoredSession) -> StoredSession:
        """The session as it may be seen."""
        return session.redacted(self.redactor()) if self.is_on else session

    def text(self, text: str, calls: Sequence[JSON] = (), /) -> str:
        """Mask a text. `calls` are those of its session that read credential files, with their outputs."""
        if not self.is_on or not text:
            return text
        redactor = _taught.get()
        if redactor is None or redactor.setting.profile != self.profile or calls:
            redactor = self.redactor()
            redactor.learn(calls)
        return str(redactor.mask_for_append(text))

    def texts(self, texts: list[str], path: str | None = None) -> list[str]:
        """Texts as they may be seen; `path` is the file that they come from."""
        if not self.is_on:
            return texts
        redactor = self.redactor()
        # All of them are one value: what begins in one line of a file may end in the next.
        redactor.learn([texts], path)
        masked = redactor.value(texts, path)
        # A long credential file is one marker.
        return masked if isinstance(masked, list) else [PLAIN] * len(texts)

    def names(self, names: list[str]) -> list[str]:
        """Names as they may be seen, each masked by itself."""
        return self.redactor().mask_each(names) if self.is_on else names

    def value(self, value: JSON) -> JSON:
        """A value that stands alone."""
        return self.redactor().learn_and_mask(value) if self.is_on else value

    def reference(self, text: str) -> str:
        """What stands for a text in an address: the text itself, unless something in it is masked."""
        if self.text(text) == text:
            return text
        word = _SIGN + hmac.digest(_KEY, text.encode("utf-8", "surrogatepass"), "sha256").hex()[:_LENGTH]
        _referred[word] = text
        return word

    def learned(self, session: StoredSession) -> Redactor:
        """One that has seen a whole session."""
        from clew.agents.masking import learn_session

        redactor = self.redactor()
        learn_session(session.agent, session.source, redactor)
        return redactor

    def record(self, session: StoredSession, raw: bytes) -> bytes:
        """A native record as it may be seen."""
        if not self.is_on:
            return raw
        from clew.redact.native_files import mask

        return mask(raw, self.learned(session))


@lru_cache
def masking(profile: str) -> Masking:
    """The masking of a profile."""
    return Masking(profile)


def _state_of_rules() -> tuple[int, int] | None:
    """Changes when the file of the person's own rules does."""
    try:
        found = (_manner.rules or config_dir() / RULES_FILE).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=16)
def _setting(profile: str, manner: Manner, _state: tuple[int, int] | None) -> Setting:
    """What is masked, and how. The rules are read again when their file has changed. Without a key, masks are plain."""
    return load_settings(profile, plain=manner.plain, rules=manner.rules, without_key=lambda _error: None)
