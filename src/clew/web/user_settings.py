"""The file `settings.json` in clew's data folder: how the web app shows sessions, unless a browser chose otherwise.

A value that cannot be used counts as its default and is reported. Keys that this version does not know are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Literal, get_args

import msgspec

from clew.errors import SourceUnreadable, UsageError
from clew.host import data_dir
from clew.io import json_file
from clew.model.json import JSON
from clew.redact.findings import Profile
from clew.render.detail import Detail
from clew.render.page.frame import Theme
from clew.timezone import find_zone
from clew.web.editor import EDITORS

FILE = "settings.json"
MASKING_IF_UNREADABLE: Profile = "all"
"""A file that cannot be read may have asked for any profile, so the strongest is used."""

Density = Literal["comfortable", "compact"]
DENSITIES: tuple[Density, ...] = get_args(Density)
NO_EDITOR = "none"


class StoredSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the file holds: what the user has chosen, and defaults for the rest."""

    theme: Theme = "auto"
    density: Density = "comfortable"
    detail: Detail = "full"
    timezone: str = ""
    """A name of the IANA database; "" is the zone of the system."""
    masking: Profile = "none"
    editor: str = NO_EDITOR
    """The URL scheme of the editor that opens files."""

    def __post_init__(self) -> None:
        """Check what types do not. Raises UsageError."""
        if self.timezone:
            find_zone(self.timezone)
        if self.editor not in (NO_EDITOR, *EDITORS):
            raise UsageError(f"{self.editor!r} is not one of {', '.join((NO_EDITOR, *EDITORS))}")


class Settings(StoredSettings, frozen=True, kw_only=True):
    """The settings, and what is wrong with their file."""

    is_masking_known: bool = True
    """False if the file may ask for more masking than could be read."""
    problems: tuple[str, ...] = ()


NAMES = StoredSettings.__struct_fields__


def settings_path() -> Path:
    """Where the file is, or would be."""
    return data_dir() / FILE


def load() -> Settings:
    """The settings. Without a file all are defaults; `problems` says what is wrong with a file."""
    path = settings_path()
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
        stored = json_file.load(path, JSON)
    except SourceUnreadable as error:
        return Settings(masking=MASKING_IF_UNREADABLE, is_masking_known=False, problems=(str(error),))
    values: dict[str, JSON] = {}
    problems = []
    for name in NAMES:
        if name not in stored:
            continue
        try:
            _check(name, stored[name])
        except UsageError as error:
            problems.append(f"{path}: {name}: {error}")
            if name == "masking":
                values |= {"masking": MASKING_IF_UNREADABLE, "is_masking_known": False}
        else:
            values[name] = stored[name]
    return Settings(**values, problems=tuple(problems))


def save(changes: Mapping[str, JSON], titles: Mapping[str, str] | None = None) -> Settings:
    """Store some settings and return all. Raises UsageError for a value that cannot be used.

    The message of an error calls a setting by its title, if it has one, else by its key. A file that cannot be read is
    not replaced: raises SourceUnreadable.
    """
    for name, value in changes.items():
        if name not in NAMES:
            raise UsageError(f"there is no setting {name!r}")
        try:
            _check(name, value)
        except UsageError as error:
            raise UsageError(f"{(titles or {}).get(name, name)}: {error}") from None
    with json_file.update(settings_path(), JSON) as stored:
        stored |= changes
    return load()


def _check(name: str, value: JSON) -> None:
    """Raise UsageError for a value that a setting cannot have."""
    try:
        msgspec.convert({name: value}, StoredSettings)
    except msgspec.ValidationError as error:
        raise UsageError(str(error).removesuffix(f" - at `$.{name}`")) from None
