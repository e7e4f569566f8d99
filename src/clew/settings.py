"""The file `settings.json` in clew's data folder: how the web app shows sessions, unless a browser chose otherwise.

A value that cannot be used counts as its default and is reported. Keys that this version does not know are kept.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import quote

import msgspec

from clew.errors import SourceUnreadable, UsageError
from clew.host import data_dir
from clew.io.atomic import write_atomic
from clew.model.json import JSON
from clew.redact.findings import PROFILES, Profile
from clew.render.detail import DETAILS, Detail
from clew.render.page.frame import THEMES, Theme
from clew.timezone import find_zone

FILE = "settings.json"
MASKING_IF_UNREADABLE: Profile = "all"
"""A file that cannot be read may have asked for any profile, so the strongest is used."""

Density = Literal["comfortable", "compact"]
DENSITIES: tuple[Density, ...] = get_args(Density)

_FILE_URL = "{scheme}://file{path}:{line}"
_OPEN_URL = "{scheme}://open?file={path}&line={line}"
EDITORS = {
    "vscode": ("VS Code", _FILE_URL),
    "vscode-insiders": ("VS Code Insiders", _FILE_URL),
    "vscodium": ("VSCodium", _FILE_URL),
    "cursor": ("Cursor", _FILE_URL),
    "windsurf": ("Windsurf", _FILE_URL),
    "zed": ("Zed", _FILE_URL),
    "idea": ("IntelliJ IDEA", _OPEN_URL),
    "pycharm": ("PyCharm", _OPEN_URL),
    "webstorm": ("WebStorm", _OPEN_URL),
    "goland": ("GoLand", _OPEN_URL),
    "rubymine": ("RubyMine", _OPEN_URL),
    "phpstorm": ("PhpStorm", _OPEN_URL),
    "txmt": ("TextMate", "{scheme}://open?url=file://{path}&line={line}"),
}
"""Editors by the URL scheme that they register: the name, and the address that opens a file at a line."""
NO_EDITOR = "none"
MAX_EDITOR_PATH_CHARS = 4_000
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

_write_lock = threading.Lock()


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the user has chosen, and defaults for the rest."""

    theme: Theme = "auto"
    density: Density = "comfortable"
    detail: Detail = "full"
    timezone: str = ""
    """A name of the IANA database; "" is the zone of the system."""
    masking: Profile = "none"
    editor: str = NO_EDITOR
    """The URL scheme of the editor that opens files."""
    is_masking_known: bool = True
    """False if the file may ask for more masking than could be read. Not stored."""
    problems: tuple[str, ...] = ()
    """What is wrong with the file. Not stored."""


NAMES = tuple(name for name in Settings.__struct_fields__ if name not in ("is_masking_known", "problems"))


def _one_of(choices: tuple[str, ...]) -> Callable[[JSON], None]:
    def check(value: JSON) -> None:
        if value not in choices:
            raise UsageError(f"{value!r} is not one of {', '.join(choices)}")

    return check


def _check_zone(value: JSON) -> None:
    if not isinstance(value, str):
        raise UsageError(f"{value!r} is not the name of a time zone")
    if value:
        find_zone(value)


_CHECKS: dict[str, Callable[[JSON], None]] = {
    "theme": _one_of(THEMES),
    "density": _one_of(DENSITIES),
    "detail": _one_of(DETAILS),
    "timezone": _check_zone,
    "masking": _one_of(PROFILES),
    "editor": _one_of((NO_EDITOR, *EDITORS)),
}
"""Raise UsageError for a value that a setting cannot have."""


def settings_path(env: Mapping[str, str] | None = None) -> Path:
    """Where the file is, or would be."""
    return data_dir(env) / FILE


def load_settings(env: Mapping[str, str] | None = None) -> Settings:
    """The settings. Without a file all are defaults; `problems` says what is wrong with a file."""
    path = settings_path(env)
    try:
        stat = path.stat()
    except FileNotFoundError:
        return Settings()
    except OSError:
        return _load(path)
    return _load_unchanged(path, (stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns))


@lru_cache(maxsize=8)
def _load_unchanged(path: Path, _state: tuple[int, int, int, int]) -> Settings:
    return _load(path)


def _load(path: Path) -> Settings:
    try:
        stored = _read(path)
    except SourceUnreadable as error:
        return Settings(masking=MASKING_IF_UNREADABLE, is_masking_known=False, problems=(str(error),))
    values: dict[str, JSON] = {}
    problems = []
    for name in NAMES:
        if name not in stored:
            continue
        try:
            _CHECKS[name](stored[name])
        except UsageError as error:
            problems.append(f"{path}: {name}: {error}")
            if name == "masking":
                values |= {"masking": MASKING_IF_UNREADABLE, "is_masking_known": False}
        else:
            values[name] = stored[name]
    return Settings(**values, problems=tuple(problems))


def save_settings(changes: Mapping[str, JSON], env: Mapping[str, str] | None = None) -> Settings:
    """Store some settings and return all. Raises UsageError for a value that cannot be used.

    A file that cannot be read is not replaced: raises SourceUnreadable.
    """
    for name, value in changes.items():
        if name not in NAMES:
            raise UsageError(f"there is no setting {name!r}")
        try:
            _CHECKS[name](value)
        except UsageError as error:
            raise UsageError(f"{name}: {error}") from None
    path = settings_path(env)
    with _write_lock:
        stored = {**_read(path), **changes}
        try:
            write_atomic(path, msgspec.json.format(msgspec.json.encode(stored), indent=2) + b"\n")
        except OSError as error:
            raise SourceUnreadable(f"{path}: cannot be written: {error.strerror or error}") from None
    return load_settings(env)


def _read(path: Path) -> dict[str, JSON]:
    try:
        stored: dict[str, JSON] = msgspec.json.decode(path.read_bytes(), type=dict[str, JSON])
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SourceUnreadable(f"{path}: {error.strerror or error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SourceUnreadable(f"{path}: {error}; correct or delete the file") from None
    return stored


def editor_url(path: str, line: int | None = None, editor: str | None = None) -> str | None:
    """The address that opens a file in the editor of the settings, or in another one.

    None without an editor, and for a path that is not absolute or could lead elsewhere than it seems.
    """
    scheme = load_settings().editor if editor is None else editor
    if scheme not in EDITORS or not _is_plain_absolute_path(path):
        return None
    plain = f"/{path}".replace("\\", "/") if _DRIVE.match(path) else path
    try:
        quoted = quote(plain, safe="/", errors="surrogateescape")
    except UnicodeEncodeError:
        return None
    _, template = EDITORS[scheme]
    return template.format(scheme=scheme, path=quoted, line=max(1, line or 1))


def _is_plain_absolute_path(path: str) -> bool:
    if len(path) > MAX_EDITOR_PATH_CHARS or _CONTROL.search(path):
        return False
    if not _DRIVE.match(path) and (not path.startswith("/") or path.startswith("//")):
        return False
    return ".." not in re.split(r"[\\/]", path)
