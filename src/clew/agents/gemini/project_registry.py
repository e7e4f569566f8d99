"""Which folder on disk a project's folder in the store stands for. A path is never invented: it is written down, or
its hash proves it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple

from clew.agents.backups import read_inside
from clew.agents.folders import subfolders
from clew.errors import WouldLose
from clew.io.codec import NOT_JSON, dumps, loads
from clew.model.json import JSON

MARKER, REGISTRY, TRUSTED = ".project_root", "projects.json", "trustedFolders.json"
_HASH = re.compile(r"[0-9a-f]{64}")
_MAX_BYTES = 4 << 20
_MAX_TRIED = 2000


@lru_cache(4096)
def hash_of(path: str) -> str:
    """The client's name for a project root before folders got readable names; still inside every chat.

    A session names some dozen folders, and the sessions of a project mostly the same ones.
    """
    import hashlib  # loads long, and looking for sessions begins here

    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()


def slug_of(path: str) -> str:
    """The readable name of a project's folder, before a number is added where it is taken."""
    base = re.split(r"[/\\]", path.rstrip("/\\"))[-1]
    return re.sub(r"[^a-z0-9]+", "-", base.lower()).strip("-") or "project"


def registered(text: bytes | None, workspace: str) -> tuple[str, bytes]:
    """The slug of a workspace, and the registry with it in; `text` is the registry as it is, None where there is none.

    A registry that cannot be read is refused: writing it anew would lose the other projects.
    """
    try:
        found = loads(text) if text else {}
    except NOT_JSON:
        raise WouldLose(f"{REGISTRY} cannot be read and would be overwritten") from None
    registry = found
    projects = registry.get("projects", {}) if isinstance(registry, dict) else None
    if not isinstance(projects, dict):
        raise WouldLose(f"{REGISTRY} is not a list of projects and would be overwritten")
    key = workspace.lower() if re.match(r"[A-Za-z]:|\\\\", workspace) else workspace
    slug = projects.get(key)
    if not isinstance(slug, str):
        base, taken = slug_of(workspace), set(map(str, projects.values()))
        slug = next(name for name in chain([base], (f"{base}-{number}" for number in count(1))) if name not in taken)
        registry = {**registry, "projects": {**projects, key: slug}}
        from msgspec.json import format

        text = format(dumps(registry), indent=2)
    return slug, text or b""


def workspace_of(project: Path, project_hash: str | None, hints: Iterable[str]) -> str:
    """The folder of a project: by its marker, by the registry, or one of the hints whose hash is the project's.

    Where nothing tells, it is the hash, or the name of the project's folder.
    """
    known = _known_roots(project.parent.parent)
    written = marker(project) or known.by_slug.get(project.name)
    if written:
        return written
    wanted = project_hash or project.name
    proven = folders_of_hashes({wanted}, (*known.roots, *hints)) if _HASH.fullmatch(wanted) else {}
    return proven.get(wanted, wanted)


def folders_of_hashes(wanted: Collection[str], hints: Iterable[str]) -> dict[str, str]:
    """For each hash the hint, or the folder above one, that has it; nothing for a hash that none of them has."""
    found: dict[str, str] = {}
    tried: set[str] = set()
    for hint in hints:
        path = hint.rstrip("/\\") or hint
        while path and path not in tried:
            if len(tried) >= _MAX_TRIED or len(found) == len(wanted):
                return found
            tried.add(path)
            for spelling in _spellings(path):
                if (digest := hash_of(spelling)) in wanted:
                    found.setdefault(digest, spelling)
            cut = max(path.rfind("/"), path.rfind("\\"))
            path = path[:cut] if cut > 0 else ""
    return found


def _spellings(path: str) -> tuple[str, ...]:
    """On Windows the registry lower-cases; the hash was made of the path as it was typed."""
    return (path, path[0].upper() + path[1:]) if path[1:2] == ":" and "a" <= path[0] <= "z" else (path,)


def marker(project: Path) -> str | None:
    """The root that is written down in a project's folder."""
    text = _text(project, MARKER)
    return text.strip() or None if text is not None else None


class _KnownRoots(NamedTuple):
    by_slug: dict[str, str]
    """Those in the registry, by the name of the project."""
    roots: tuple[str, ...]
    """Every project root that the store names anywhere."""


def _known_roots(base: Path) -> _KnownRoots:
    return _read_roots(base, *[_changed(f"{base}/{name}") for name in ("tmp", "history", REGISTRY, TRUSTED)])


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - asked four times for each session
    except OSError:
        return 0


@lru_cache(64)
def _read_roots(base: Path, *_changed: int) -> _KnownRoots:
    """Read again when one of the files or folders changes."""
    registry, trusted = _json(base, REGISTRY), _json(base, TRUSTED)
    projects = registry.get("projects") if isinstance(registry, dict) else None
    pairs = projects.items() if isinstance(projects, dict) else ()
    by_slug = {slug: path for path, slug in pairs if isinstance(slug, str)}
    markers = [marker(folder) for store in ("tmp", "history") for folder in subfolders(base / store)]
    named = trusted if isinstance(trusted, dict) else ()
    return _KnownRoots(by_slug, (*by_slug.values(), *(root for root in markers if root), *named))


def copies_of(root: Path) -> Mapping[str, Path]:
    """For each hash the folder with a readable name of the same project: chats were copied there, not moved."""
    found: dict[str, Path] = {}
    for folder in subfolders(root):
        if not _HASH.fullmatch(folder.name):
            path = marker(folder) or _known_roots(root.parent).by_slug.get(folder.name)
            if path:
                found.update({hash_of(spelling): folder for spelling in _spellings(path)})
    return found


def _text(folder: Path, name: str) -> str | None:
    """A small file, if it is one."""
    try:
        return (read_inside(folder, name, _MAX_BYTES) or b"").decode() or None
    except UnicodeDecodeError:
        return None


def _json(folder: Path, name: str) -> JSON:
    try:
        return loads(_text(folder, name) or b"null")
    except NOT_JSON:
        return None
