"""What a person has set: the key of the markers, and rules of their own. The one part here that touches files."""

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
"""In clew's data folder: what the tags of all markers of this person are made with."""
RULES_FILE = "redaction.toml"
"""In clew's configuration folder: rules and allow-lists of the person's own."""
_LENGTH = 32
_READ_ATTEMPTS, _READ_PAUSE_SECONDS = 20, 0.05


class KeyUnavailable(SourceUnreadable):
    """The key can neither be read nor made, as in a data folder that nobody may write to."""


def chosen(
    profile: str,
    *,
    plain: bool = False,
    rules: Path | None = None,
    without_key: Callable[[KeyUnavailable], object] | None = None,
) -> Setting:
    """What is masked and how: by the rules of a file, which is else the one in the person's configuration.

    Where there can be no key, `without_key` is told, and markers are plain; without it, KeyUnavailable is raised.
    """
    kinds_of(profile)
    own = config_dir() / RULES_FILE
    file = rules or (own if own.is_file() else None)
    marker = Marker() if plain else OwnMarker(data_dir(), without_key)
    return Setting(profile, marker, load_rules(file) if file else None)


class OwnMarker:
    """Marks under the person's own key, which is read, or made, when something is marked for the first time."""

    def __init__(self, folder: Path, without_key: Callable[[KeyUnavailable], object] | None = None) -> None:
        self._folder, self._without_key = folder, without_key
        self._marker: Marker | None = None

    def __call__(self, value: str, rule: str) -> str:
        """The marker for a value that a rule found."""
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
    """The key in a folder, for its owner alone; made on first use, once, whoever else makes one at the same time."""
    path = folder / KEY_FILE
    if not path.exists():
        _make(path)
    key = b""
    for _ in range(_READ_ATTEMPTS):
        try:
            key = path.read_bytes()
        except OSError as error:
            raise KeyUnavailable(f"{path}: {error.strerror or error}") from error
        if len(key) >= _LENGTH:
            break
        time.sleep(_READ_PAUSE_SECONDS)  # where there are no hard links, another process may be writing it right now
    if len(key) < _LENGTH:
        raise SourceUnreadable(f"{path}: is no key; remove it, and a new one is made")
    return key


def _make(path: Path) -> None:
    try:
        private_folder(str(path.parent))
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # which nobody else may read
    except OSError as error:
        raise KeyUnavailable(f"{path}: {error.strerror or error}") from error
    key = secrets.token_bytes(_LENGTH)
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
        _make_in_place(path, key)
    finally:
        Path(name).unlink()


def _make_in_place(path: Path, key: bytes) -> None:
    """Write the key to a file that nobody else has made."""
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
