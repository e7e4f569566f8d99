"""Loads the user's settings: the key of the markers, and rules of their own. Only this module touches files."""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from clew.datadir import private_folder
from clew.errors import SourceUnreadable
from clew.host import config_dir, data_dir
from clew.redact.findings import kinds_of
from clew.redact.masks import Marker
from clew.redact.redactor import Setting
from clew.redact.user_rules import load_rules

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
) -> Setting:
    """Load the setting of a profile, with the rules of a file or those in the user's configuration.

    Without a key, `without_key` is called and markers are plain; if it is not given, KeyUnavailable is raised.
    """
    kinds_of(profile)
    own = config_dir() / RULES_FILE
    file = rules or (own if own.is_file() else None)
    marker = Marker() if plain else UserMarker(data_dir(), without_key)
    return Setting(profile, marker, load_rules(file) if file else None)


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
        raise SourceUnreadable(f"{path}: is not a key; remove it, and clew creates a new one")
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
