"""The rollouts below Codex's home, and what their names tell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import NamedTuple

from clew.agents.base import file_stem
from clew.agents.folders import files_below

AGENT = "codex"
SESSIONS, ARCHIVED = "sessions", "archived_sessions"
THREAD_INDEX = "session_index.jsonl"
"""The list of thread names, beside the folders of the rollouts."""

_NAME = re.compile(r"rollout-(\d{4}-\d\d-\d\d(?:T\d\d-\d\d-\d\d)?)-([^_]+)(?:_(.+))?")
_PLAIN = re.compile(r"rollout-.+\.jsonl(?:\.zst|\.gz)?|rollout-\d{4}-\d\d-\d\d-.+\.json")


class Named(NamedTuple):
    """What a file name tells."""

    stamp: str
    thread: str
    rollout: str | None


def rollouts_below(root: Path) -> Iterator[Path]:
    """Every rollout below a folder. A packed one is hidden by its plain sibling; nothing is opened."""
    for path in files_below(root, ("**/rollout-*.jsonl", "**/rollout-*.json")):
        if is_rollout(path.name) and not (path.suffix == ".zst" and path.with_suffix("").exists()):
            yield path


def is_rollout(name: str) -> bool:
    """True for the name of a rollout; staging files begin with a dot."""
    return _PLAIN.fullmatch(name) is not None


def parse_name(path: PurePath) -> Named | None:
    """Stamp, thread and rollout of a file name; None where it is not named like a rollout."""
    found = _NAME.fullmatch(file_stem(path))
    return Named(found[1], found[2], found[3]) if found else None


def home_of(path: Path) -> Path | None:
    """The Codex home a rollout lies in, by the folders above it."""
    return next((folder.parent for folder in path.parents if folder.name in (SESSIONS, ARCHIVED)), None)


def find_rollout(near: Path, name: str) -> Path | None:
    """The file of a thread or rollout id in the home of a file; the newest where there are several."""
    home = home_of(near)
    if home is None:
        return None
    found = _INDEXES.get(home, {}).get(name)
    if found is None or not found.exists():
        # What is not known may have come since the folders were listed.
        index = _INDEXES[home] = {}
        for path in (*rollouts_below(home / ARCHIVED), *rollouts_below(home / SESSIONS)):
            named = parse_name(path)
            if named is not None:
                # A replaced rollout is known by its own id; the thread's id means the first file.
                index[named.rollout or named.thread] = path
        found = index.get(name)
    return found


_INDEXES: dict[Path, dict[str, Path]] = {}
"""The files of each home by thread or rollout, so that the folders are not listed for every question."""
