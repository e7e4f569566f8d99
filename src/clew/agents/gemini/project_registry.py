"""Which folder on disk a project's folder in the store stands for. A path is never invented: it is written down, or
its hash proves it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from clew.errors import WouldLose
from clew.io.codec import NOT_JSON, dumps, loads
from clew.model.json import JSON

MARKER, REGISTRY, TRUSTED = ".project_root", "projects.json", "trustedFolders.json"
_HASH = re.compile(r"[0-9a-f]{64}")
_LIMIT = 4 << 20
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
        raise WouldLose(f"{REGISTRY} cannot be read, and would have to be replaced") from None
    registry = found
    projects = registry.get("projects", {}) if isinstance(registry, dict) else None
    if not isinstance(projects, dict):
        raise WouldLose(f"{REGISTRY} is no list of projects, and would have to be replaced")
    key = workspace.lower() if _is_windows(workspace) else workspace
    slug = projects.get(key)
    if not isinstance(slug, str):
        slug = _free(slug_of(workspace), set(map(str, projects.values())))
        registry = {**registry, "projects": {**projects, key: slug}}
        from msgspec.json import format

        text = format(dumps(registry), indent=2)
    return slug, text or b""


def _free(slug: str, taken: set[str]) -> str:
    number, name = 0, slug
    while name in taken:
        number += 1
        name = f"{slug}-{number}"
    return name


def _is_windows(path: str) -> bool:
    return re.match(r"[A-Za-z]:|\\\\", path) is not None


def workspace_of(project: Path, project_hash: str | None, hints: Iterable[str]) -> str:
    """The folder of a project: by its marker, by the registry, or one of the hints whose hash is the project's.

    Where nothing tells, it is the hash, or the name of the project's folder.
    """
    base = _base(project)
    written = _marker(project) or _registry(base).get(project.name)
    if written:
        return written
    wanted = project_hash or project.name
    proved = proven(wanted, (*_known(base), *hints)) if _HASH.fullmatch(wanted) else None
    return proved or wanted


def proven(wanted: str, hints: Iterable[str]) -> str | None:
    """The hint, or the folder above one, that has the hash."""
    tried: set[str] = set()
    for hint in hints:
        path = hint.rstrip("/\\") or hint
        while path and path not in tried:
            if len(tried) >= _MAX_TRIED:
                return None
            tried.add(path)
            for spelling in _spellings(path) if path[1:2] == ":" else (path,):
                if hash_of(spelling) == wanted:
                    return spelling
            cut = max(path.rfind("/"), path.rfind("\\"))
            path = path[:cut] if cut > 0 else ""
    return None


def _spellings(path: str) -> tuple[str, ...]:
    """On Windows the registry lower-cases; the hash was made of the path as it was typed."""
    return (path, path[0].upper() + path[1:]) if path[1:2] == ":" and "a" <= path[0] <= "z" else (path,)


def _marker(project: Path) -> str | None:
    text = _text(f"{project}/{MARKER}")
    return text.strip() or None if text is not None else None


@lru_cache(64)
def _base(project: Path) -> str:
    return str(project.parent.parent)


@lru_cache(64)
def _read_registry(path: str, _changed: int) -> dict[str, str]:
    found = _json(path)
    projects = found.get("projects") if isinstance(found, dict) else None
    pairs = projects.items() if isinstance(projects, dict) else ()
    return {slug: path for path, slug in pairs if isinstance(slug, str)}


def _registry(base: str) -> dict[str, str]:
    """Folders by the name of the project."""
    changed = _changed(f"{base}/{REGISTRY}")
    return _read_registry(f"{base}/{REGISTRY}", changed) if changed else {}


def _known(base: str) -> tuple[str, ...]:
    """Every project root that the store names anywhere."""
    changed = [_changed(f"{base}/{name}") for name in ("tmp", "history", REGISTRY, TRUSTED)]
    return _read_known(base, tuple(changed))


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - asked four times for each session
    except OSError:
        return 0


@lru_cache(64)
def _read_known(base: str, _changed: tuple[int, ...]) -> tuple[str, ...]:
    markers = [_marker(folder) for store in ("tmp", "history") for folder in _folders(Path(base, store))]
    trusted = _json(f"{base}/{TRUSTED}")
    named = trusted if isinstance(trusted, dict) else ()
    return (*_registry(base).values(), *(root for root in markers if root), *named)


def copies_of(root: Path) -> Mapping[str, Path]:
    """For each hash the folder with a readable name of the same project: chats were copied there, not moved."""
    found: dict[str, Path] = {}
    for folder in _folders(root):
        if not _HASH.fullmatch(folder.name):
            path = _marker(folder) or _registry(str(root.parent)).get(folder.name)
            if path:
                found.update({hash_of(spelling): folder for spelling in _spellings(path)})
    return found


def _folders(root: Path) -> list[Path]:
    try:
        return sorted(path for path in root.iterdir() if path.is_dir() and not path.is_symlink())
    except OSError:
        return []


def _text(path: str) -> str | None:
    """A small file, if it is one."""
    try:
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _LIMIT:
            return None
        with open(path, "rb") as file:
            return file.read().decode()
    except (OSError, ValueError):
        return None


def _json(path: str) -> JSON:
    text = _text(path)
    try:
        return loads(text.encode()) if text else None
    except NOT_JSON:
        return None
