"""What may leave of a session: at `metrics` no text at all, at `redacted` text with secrets masked, at `raw` all."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from clew.errors import UsageError
from clew.redact.masks import MARKER, PLAIN, Marker
from clew.redact.redactor import Redactor, Setting
from clew.redact.scanner import Rules, standard
from clew.redact.settings import parse_rules
from clew.warehouse.columns import LEVELS

_TAG = 12
"""Bytes of the tag that stands for a path, or for an id."""
_MASKING = 2
"""Of what is masked here beyond the rules: where it grows, everything is written again."""


class Policy(NamedTuple):
    """What leaves, and how it is masked. Nothing in it but plain values: it can be sent to a worker."""

    level: str = "metrics"
    key: bytes = b""
    """What tags and markers are made with; never leaves."""
    profile: str = "paths"
    """What is masked: `paths` (secrets too) or `all`."""
    rules: str = ""
    """A person's own rules, as the text of their file."""

    @property
    def version(self) -> str:
        """That of the rules; where it changes, sources are read again."""
        return f"{rules_of(self).version} {_MASKING}" + ("" if self.profile == "paths" else f" {self.profile}")


def check(policy: Policy) -> Policy:
    """The policy; raises UsageError where it would let out what it must not."""
    if policy.level not in LEVELS:
        raise UsageError(f"no level {policy.level!r}; there are {', '.join(LEVELS)}")
    if policy.profile not in ("paths", "all"):
        raise UsageError(f"profile {policy.profile!r}: what leaves is masked with `paths` or `all`")
    if policy.level != "raw" and not policy.key:
        raise UsageError(f"level {policy.level}: a key is needed to mask with")
    return policy


@lru_cache(maxsize=4)
def _parsed(text: str) -> Rules:
    return parse_rules(text, "redaction.toml")


def rules_of(policy: Policy) -> Rules:
    """The rules, the person's own among them."""
    return _parsed(policy.rules) if policy.rules else standard()


def own_rules(folder: Path) -> str:
    """The text of the rules in a person's configuration folder; "" where there are none."""
    from clew.redact.settings import RULES_FILE

    path = folder / RULES_FILE
    try:
        return path.read_text(encoding="utf-8") if path.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error


class _Noting(Marker):
    """Makes markers, and knows for whose names."""

    def __init__(self, key: bytes) -> None:
        super().__init__(key)
        self.users: dict[str, str] = {}
        """By their markers."""

    def __call__(self, value: str, rule: str) -> str:
        marker = super().__call__(value, rule)
        if rule == "user_name":
            self.users[marker] = value
        return marker


def redactor(policy: Policy) -> Redactor:
    """One for the parts of one session."""
    return Redactor(Setting(policy.profile, _Noting(policy.key), rules_of(policy)))


def told(text: str) -> str:
    """A line for the person of what went wrong, whatever words it is made of: without secrets."""
    line = text.strip().partition("\n")[0]
    return Redactor(Setting("secrets", Marker())).text(line)


class Words:
    """The words of rows as they may leave: names of projects, branches, models and tools, paths, and ids."""

    def __init__(self, policy: Policy, masking: Redactor | None = None) -> None:
        self._policy = policy
        self._redactor = masking or (redactor(policy) if policy.level != "raw" else None)
        self._known: dict[str, str] = {"": ""}
        self.has_text = policy.level != "metrics"
        """False where no text leaves, and no id that only a text would be found by."""

    def word(self, word: str) -> str:
        """A name, masked where it holds what must stay."""
        if self._redactor is None:
            return word
        masked = self._known.get(word)
        if masked is None:
            masked = self._known[word] = self._redactor.text(word)
        return masked

    def whose(self, *folders: str) -> Callable[[str], str]:
        """What hides the names of the people whose folders these are, wherever else they stand as words."""
        if self._redactor is None or not isinstance(self._redactor.setting.mark, _Noting):
            return str
        masked = " ".join(map(self.word, folders))
        markers = {
            name.lower(): marker for marker, name in self._redactor.setting.mark.users.items() if marker in masked
        }
        return _hiding(markers) if markers else str

    def identifier(self, name: str) -> str:
        """An id that an agent gave, in which anything may stand: where text leaves, equal ones stay equal."""
        if self._redactor is None or not name:
            return name
        digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_TAG)
        return digest.hexdigest() if self.has_text else ""

    def path(self, path: str) -> str:
        """The path of a file; without text a tag, so that equal ones stay equal and nobody can test a guess."""
        if self.has_text or not path:
            return self.word(path)
        return blake2b(path.encode("utf-8", "surrogatepass"), digest_size=_TAG, key=self._policy.key[:64]).hexdigest()


def _hiding(markers: dict[str, str]) -> Callable[[str], str]:
    """What puts markers in the place of names, in any case, where these are whole words."""
    names = "|".join(map(re.escape, sorted(markers, key=len, reverse=True)))
    words = re.compile(rf"{MARKER.pattern}|(?<![^\W_])(?P<name>{names})(?![^\W_])", re.IGNORECASE)

    def marked(found: re.Match[str]) -> str:
        return found[0] if found["name"] is None else markers.get(found[0].lower(), PLAIN)

    return lambda text: words.sub(marked, text)
