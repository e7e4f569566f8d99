"""Load the user's settings: the key of the markers, and a TOML file with rules and exceptions of their own.

    [[rule]]
    id = "staff_number"
    pattern = 'EMP-[0-9]{6}'
    kind = "pii"              # secret (the default), pii or path

    [allow]
    values = ["a value that is no secret"]
    patterns = ['test-[a-z]+']   # must match the whole value
    rules = ["host_name"]        # built-in rules to switch off

Expressions are re2's: linear in time on every text. One that does not compile, matches the empty text, or compiles to
more instructions than `MAX_INSTRUCTIONS` is refused with its line.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
import time
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from clew.datadir import private_folder
from clew.errors import SourceUnreadable, UsageError
from clew.host import config_dir, data_dir
from clew.redact.findings import Kind, kinds_of
from clew.redact.lazy_pattern import lazy_compile
from clew.redact.masks import Marker
from clew.redact.matcher import compile_bytes
from clew.redact.redactor import MaskSettings
from clew.redact.scanner import Allowed, Rules, SecretRules, UserRule, rule_ids
from clew.redact.token_formats import VERSION
from clew.redact.token_rules import Services, builtin_rules

KEY_FILE = "redaction.key"
"""The file in clew's data folder with the key of the tags in markers."""
RULES_FILE = "redaction.toml"
"""The file in clew's configuration folder with the user's own rules and allow-list."""
_KEY_BYTES = 32
_READ_ATTEMPTS, _READ_PAUSE_SECONDS = 20, 0.05


class KeyUnavailable(SourceUnreadable):
    """The key can neither be read nor created, as in a read-only data folder."""


def load_settings(
    profile: str,
    *,
    plain: bool = False,
    rules: Path | None = None,
    without_key: Callable[[KeyUnavailable], object] | None = None,
) -> MaskSettings:
    """Load the setting of a profile, with the rules of a file or those in the user's configuration.

    Without a key, `without_key` is called and markers are plain; if it is not given, KeyUnavailable is raised.
    """
    kinds_of(profile)
    own = config_dir() / RULES_FILE
    file = rules or (own if own.is_file() else None)
    marker = Marker() if plain else UserMarker(data_dir(), without_key)
    return MaskSettings(profile, marker, load_rules(file) if file else None)


class UserMarker:
    """Makes markers under the user's key, which is read or created when the first marker is made."""

    def __init__(self, folder: Path, without_key: Callable[[KeyUnavailable], object] | None = None) -> None:
        self._folder, self._without_key = folder, without_key
        self._marker: Marker | None = None

    def __call__(self, value: str, rule: str) -> str:
        """Return the marker of a value that a rule found."""
        if self._marker is None:
            try:
                self._marker = Marker(marker_key(self._folder))
            except KeyUnavailable as error:
                if self._without_key is None:
                    raise
                self._marker = Marker()
                self._without_key(error)
            except SourceUnreadable as error:
                raise SourceUnreadable(f"{error}; --redact-plain masks without a key") from error
        return self._marker(value, rule)


def marker_key(folder: Path) -> bytes:
    """Return the key in a folder, readable for its owner alone; create it once, even if processes race."""
    path = folder / KEY_FILE
    if not path.exists():
        _create(path)
    key = b""
    for _ in range(_READ_ATTEMPTS):
        try:
            key = path.read_bytes()
        except OSError as error:
            raise KeyUnavailable(f"{path}: {error.strerror or error}") from error
        if len(key) >= _KEY_BYTES:
            break
        time.sleep(_READ_PAUSE_SECONDS)  # where there are no hard links, another process may be writing it right now
    if len(key) < _KEY_BYTES:
        raise SourceUnreadable(f"{path}: too short for a key; remove the file and clew creates a new key")
    return key


def _create(path: Path) -> None:
    try:
        private_folder(str(path.parent))
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
    except OSError as error:
        raise KeyUnavailable(f"{path}: {error.strerror or error}") from error
    key = secrets.token_bytes(_KEY_BYTES)
    try:
        with open(descriptor, "wb") as handle:
            handle.write(key)
            handle.flush()
            os.fsync(handle.fileno())
        os.link(name, path)
    except FileExistsError:
        pass
    except OSError:
        # The file system has no hard links (exFAT, some network shares).
        _create_in_place(path, key)
    finally:
        Path(name).unlink()


def _create_in_place(path: Path, key: bytes) -> None:
    """Write the key to a file that does not exist yet."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    except OSError as error:
        raise KeyUnavailable(f"{path}: {error.strerror or error}") from error
    try:
        with open(descriptor, "wb") as handle:
            handle.write(key)
            handle.flush()
            os.fsync(handle.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise KeyUnavailable(f"{path}: {error.strerror or error}") from error


# --- Rules of the user

# Limits of a compiled expression, which keep a search fast on hostile texts.
MAX_INSTRUCTIONS = 10_000
_MEMORY_BYTES = 4 << 20
_MAX_RULES = 200
_ID = lazy_compile(r"[a-z][a-z0-9_.-]{0,63}")
_TABLES, _RULE, _ALLOW = {"rule", "allow"}, {"id", "pattern", "kind"}, {"values", "patterns", "rules"}


def load_rules(path: Path) -> Rules:
    """Load the built-in rules with those of a file. Raises UsageError with the file, the line and the mistake."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    return parse_rules(text, str(path))


def parse_rules(text: str, name: str = "rules") -> Rules:
    """Parse rules from text."""
    import tomllib  # Few users have rules of their own, and all wait for what is loaded.

    source = _Source(text, name)
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name}: {error}") from error
    source.only(table, _TABLES, "")
    rows = source.list_of(table.get("rule", []), dict, "rule")
    if len(rows) > _MAX_RULES:
        raise UsageError(f"{name}: {len(rows)} rules; at most {_MAX_RULES}")
    user = [_rule(source, row) for row in rows]
    for number, rule in enumerate(user):
        if rule.id in {earlier.id for earlier in user[:number]}:
            raise source.refuse(rule.id, f"two rules have the id {rule.id!r}; choose another id for one of them")
    added = hashlib.sha256(text.encode()).hexdigest()[:8] if user or table.get("allow") else ""
    version = f"{VERSION}+{added}" if added else VERSION
    return Rules(version, SecretRules(Services(builtin_rules())), user, _allowed(source, table))


class _Source:
    """The text of a rules file, to name the line of a mistake."""

    def __init__(self, text: str, name: str) -> None:
        self._lines, self._name = text.splitlines(), name

    def refuse(self, sought: str, why: str) -> UsageError:
        """Return the error for the line that holds a text."""
        for number, line in enumerate(self._lines, 1):
            if sought and sought in line:
                return UsageError(f"{self._name}:{number}: {why}")
        return UsageError(f"{self._name}: {why}")

    def only(self, table: dict[str, Any], allowed: set[str], where: str) -> None:
        for key in table:
            if key not in allowed:
                raise self.refuse(key, f"unknown key {key!r}{where}; there are {', '.join(sorted(allowed))}")

    def list_of(self, value: object, kind: type, name: str) -> list[Any]:
        if not isinstance(value, list) or not all(isinstance(each, kind) for each in value):
            raise self.refuse(name, f"{name!r} must be a list of {'tables' if kind is dict else 'texts'}")
        return value

    def compile(self, pattern: object, what: str) -> Any:
        """Compile an expression. Raises UsageError if it is refused."""
        import re2

        if not isinstance(pattern, str) or not pattern:
            raise self.refuse(what, f"{what}: `pattern` is missing")
        sought = pattern.splitlines()[0]
        try:
            compiled = compile_bytes(pattern, memory=_MEMORY_BYTES, encoding="UTF8")
        except re2.error as error:
            raise self.refuse(sought, f"{what}: invalid regular expression: {_error_text(error)}") from error
        if compiled.programsize > MAX_INSTRUCTIONS:
            raise self.refuse(
                sought,
                f"{what}: the expression is too complex: {compiled.programsize} steps, limit {MAX_INSTRUCTIONS}",
            )
        if compiled.fullmatch(b""):
            raise self.refuse(sought, f"{what}: the expression matches the empty string")
        return compiled


def _like(rule: str) -> str:
    near = get_close_matches(rule, sorted(rule_ids()), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _error_text(error: Exception) -> str:
    said = error.args[0] if error.args else error
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


def _rule(source: _Source, row: dict[str, Any]) -> UserRule:
    identifier = row.get("id")
    if not isinstance(identifier, str) or not _ID.fullmatch(identifier):
        raise source.refuse(
            str(identifier), f"a rule needs an id of small letters, digits and _.- (not {identifier!r})"
        )
    source.only(row, _RULE, f" in rule {identifier!r}")
    if identifier in rule_ids():
        raise source.refuse(identifier, f"rule {identifier!r} is a built-in rule; choose another id")
    kind = row.get("kind", "secret")
    if kind not in get_args(Kind):
        kinds = ", ".join(get_args(Kind))
        raise source.refuse(str(kind), f"rule {identifier!r}: unknown kind {kind!r}; use one of {kinds}")
    if not row.get("pattern"):
        raise source.refuse(identifier, f"rule {identifier!r}: `pattern` is missing")
    return UserRule(identifier, kind, source.compile(row.get("pattern"), f"rule {identifier!r}"))


def _allowed(source: _Source, table: dict[str, Any]) -> Allowed:
    allow = table.get("allow", {})
    if not isinstance(allow, dict):
        raise source.refuse("allow", "'allow' must be a table")
    source.only(allow, _ALLOW, " in [allow]")
    values = source.list_of(allow.get("values", []), str, "values")
    patterns = source.list_of(allow.get("patterns", []), str, "patterns")
    rules = source.list_of(allow.get("rules", []), str, "rules")
    own = {row.get("id") for row in table.get("rule", ())}
    for rule in rules:
        if rule not in rule_ids() and rule not in own:
            raise source.refuse(rule, f"no rule {rule!r}{_like(rule)}")
    compiled = tuple(source.compile(pattern, "allow") for pattern in patterns)
    return Allowed(frozenset(value.encode() for value in values), compiled, frozenset(rules))
