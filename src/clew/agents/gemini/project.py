"""Which folder on disk a project's folder in the store stands for. A path is never invented: it is written down, or
its hash proves it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from clew.io.codec import NOT_JSON, dumps, loads
from clew.model.json import JSON

MARKER, REGISTRY, TRUSTED = ".project_root", "projects.json", "trustedFolders.json"
_HASH = re.compile(r"[0-9a-f]{64}")
_LIMIT = 4 << 20
_MAX_TRIED = 2000


def hash_of(path: str) -> str:
    """The client's name for a project root before folders got readable names; still inside every chat."""
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()


def slug_of(path: str) -> str:
    """The readable name of a project's folder, before a number is added where it is taken."""
    base = re.split(r"[/\\]", path.rstrip("/\\"))[-1]
    return re.sub(r"[^a-z0-9]+", "-", base.lower()).strip("-") or "project"


def registered(text: bytes | None, workspace: str) -> tuple[str, bytes]:
    """The slug of a workspace, and the registry with it in; `text` is the registry as it is, None where there is none.

    A registry that cannot be read is written anew, as the client does.
    """
    try:
        found = loads(text) if text else {}
    except NOT_JSON:
        found = {}
    registry = found if isinstance(found, dict) else {}
    projects = registry.get("projects")
    projects = projects if isinstance(projects, dict) else {}
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
    written = _marker(project) or _registry(project.parent.parent).get(project.name)
    if written:
        return written
    wanted = project_hash or project.name
    proved = proven(wanted, (*_known(project.parent.parent), *hints)) if _HASH.fullmatch(wanted) else None
    return proved or wanted


def proven(wanted: str, hints: Iterable[str]) -> str | None:
    """The hint, or the folder above one, that has the hash."""
    tried: set[str] = set()
    for hint in hints:
        for path in _upwards(hint):
            if path in tried:
                break
            if len(tried) >= _MAX_TRIED:
                return None
            tried.add(path)
            for spelling in _spellings(path):
                if hash_of(spelling) == wanted:
                    return spelling
    return None


def _upwards(path: str) -> Iterator[str]:
    path = path.rstrip("/\\") or path
    while path:
        yield path
        cut = max(path.rfind("/"), path.rfind("\\"))
        path = path[:cut] if cut > 0 else ""


def _spellings(path: str) -> Iterator[str]:
    """On Windows the registry lower-cases; the hash was made of the path as it was typed."""
    yield path
    if re.match(r"[a-z]:", path):
        yield path[0].upper() + path[1:]


def _marker(project: Path) -> str | None:
    text = _text(project / MARKER)
    return text.strip() or None if text is not None else None


@lru_cache(64)
def _read_registry(path: Path, _changed: int) -> dict[str, str]:
    found = _json(path)
    projects = found.get("projects") if isinstance(found, dict) else None
    pairs = projects.items() if isinstance(projects, dict) else ()
    return {slug: path for path, slug in pairs if isinstance(slug, str)}


def _registry(base: Path) -> dict[str, str]:
    """Folders by the name of the project."""
    try:
        return _read_registry(base / REGISTRY, (base / REGISTRY).stat().st_mtime_ns)
    except OSError:
        return {}


def _known(base: Path) -> tuple[str, ...]:
    """Every project root that the store names anywhere."""
    changed = [_changed(base / name) for name in ("tmp", "history", REGISTRY, TRUSTED)]
    return _read_known(base, tuple(changed))


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(64)
def _read_known(base: Path, _changed: tuple[int, ...]) -> tuple[str, ...]:
    markers = [_marker(folder) for store in ("tmp", "history") for folder in _folders(base / store)]
    trusted = _json(base / TRUSTED)
    named = trusted if isinstance(trusted, dict) else ()
    return (*_registry(base).values(), *(root for root in markers if root), *named)


def copies_of(root: Path) -> Mapping[str, Path]:
    """For each hash the folder with a readable name of the same project: chats were copied there, not moved."""
    found: dict[str, Path] = {}
    for folder in _folders(root):
        if not _HASH.fullmatch(folder.name):
            path = _marker(folder) or _registry(root.parent).get(folder.name)
            if path:
                found.update({hash_of(spelling): folder for spelling in _spellings(path)})
    return found


def _folders(root: Path) -> list[Path]:
    try:
        return sorted(path for path in root.iterdir() if path.is_dir() and not path.is_symlink())
    except OSError:
        return []


def _text(path: Path) -> str | None:
    """A small file, if it is one."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _LIMIT:
            return None
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None


def _json(path: Path) -> JSON:
    text = _text(path)
    try:
        return loads(text.encode()) if text else None
    except NOT_JSON:
        return None
