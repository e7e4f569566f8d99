"""What is published of a session: at level `metrics` no text, at `redacted` text with secrets masked, at `raw` all."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from clew.errors import UsageError
from clew.redact.masks import MARKER, PLAIN, Marker
from clew.redact.redactor import MaskSettings, Redactor
from clew.redact.scanner import Rules, default_rules
from clew.redact.settings import RULES_FILE, parse_rules
from clew.warehouse.columns import LEVELS

TAG_BYTES = 12
"""Length of the hash that replaces a path or an id."""
MASKING_VERSION = 2
"""Of the masking in this module, beyond the rules. When it changes, all sources are written again."""


class Policy(NamedTuple):
    """What is published, and how it is masked. Plain values only, so that it can be sent to a worker."""

    level: str = "metrics"
    key: bytes = b""
    """The key of tags and markers; never published."""
    profile: str = "paths"
    """What is masked: `paths` (and secrets) or `all`."""
    rules: str = ""
    """The content of the user's own file of rules."""

    @property
    def version(self) -> str:
        """Version of the rules. When it changes, all sources are written again."""
        profile = "" if self.profile == "paths" else f" {self.profile}"
        return f"{load_rules(self).version} {MASKING_VERSION}{profile}"


def check_policy(policy: Policy) -> Policy:
    """Return the policy; raises UsageError if it would publish what must be masked."""
    if policy.level not in LEVELS:
        raise UsageError(f"no level {policy.level!r}; levels are {', '.join(LEVELS)}")
    if policy.profile not in ("paths", "all"):
        raise UsageError(f"profile {policy.profile!r}: published data is masked with `paths` or `all`")
    if policy.level != "raw" and not policy.key:
        raise UsageError(f"level {policy.level}: masking needs a key")
    return policy


@lru_cache(maxsize=4)
def _parse_rules(text: str) -> Rules:
    return parse_rules(text, RULES_FILE)


def load_rules(policy: Policy) -> Rules:
    """The standard rules and those of the user."""
    return _parse_rules(policy.rules) if policy.rules else default_rules()


def read_user_rules(folder: Path) -> str:
    """The content of the user's file of rules; "" if there is none."""
    path = folder / RULES_FILE
    try:
        return path.read_text(encoding="utf-8") if path.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error


class _UserNameMarker(Marker):
    """Creates markers, and keeps the user names that it created markers for."""

    def __init__(self, key: bytes) -> None:
        super().__init__(key)
        self.user_names: dict[str, str] = {}
        """By marker."""

    def __call__(self, value: str, rule: str) -> str:
        marker = super().__call__(value, rule)
        if rule == "user_name":
            self.user_names[marker] = value
        return marker


def make_redactor(policy: Policy) -> Redactor:
    """A redactor for one session."""
    return Redactor(MaskSettings(policy.profile, _UserNameMarker(policy.key), load_rules(policy)))


def redact_error(text: str) -> str:
    """The first line of an error message, without secrets."""
    line = text.strip().partition("\n")[0]
    return Redactor(MaskSettings("secrets", Marker())).text(line)


class FieldMasker:
    """Masks the short fields of rows: names of projects, branches, models and tools, paths, and ids."""

    def __init__(self, policy: Policy, redactor: Redactor | None = None) -> None:
        self._policy = policy
        self._redactor = redactor or (make_redactor(policy) if policy.level != "raw" else None)
        self._masked: dict[str, str] = {"": ""}
        self.has_text = policy.level != "metrics"
        """False if neither text is published nor ids that only serve to find text."""

    def name(self, name: str) -> str:
        """A name, with secrets masked."""
        if self._redactor is None:
            return name
        masked = self._masked.get(name)
        if masked is None:
            masked = self._masked[name] = self._redactor.text(name)
        return masked

    def mask_owner_names(self, *folders: str) -> Callable[[str], str]:
        """A function that masks, as whole words, the names of the users whose home folders these are in."""
        if self._redactor is None or not isinstance(self._redactor.settings.mark, _UserNameMarker):
            return str
        masked = " ".join(map(self.name, folders))
        user_names = self._redactor.settings.mark.user_names
        markers = {name.lower(): marker for marker, name in user_names.items() if marker in masked}
        return _name_replacer(markers) if markers else str

    def identifier(self, name: str) -> str:
        """A hash of an id that an agent chose, which may hold anything; "" if no text is published."""
        if self._redactor is None or not name:
            return name
        digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=TAG_BYTES)
        return digest.hexdigest() if self.has_text else ""

    def path(self, path: str) -> str:
        """A path, masked; without text a keyed hash, so that equal paths stay equal and a guess cannot be tested."""
        if self.has_text or not path:
            return self.name(path)
        content = path.encode("utf-8", "surrogatepass")
        return blake2b(content, digest_size=TAG_BYTES, key=self._policy.key[:64]).hexdigest()


def _name_replacer(markers: dict[str, str]) -> Callable[[str], str]:
    """A function that replaces names by markers, in any case, as whole words and outside other markers."""
    names = "|".join(map(re.escape, sorted(markers, key=len, reverse=True)))
    words = re.compile(rf"{MARKER.pattern}|(?<![^\W_])(?P<name>{names})(?![^\W_])", re.IGNORECASE)

    def replacement(found: re.Match[str]) -> str:
        return found[0] if found["name"] is None else markers.get(found[0].lower(), PLAIN)

    return lambda text: words.sub(replacement, text)
