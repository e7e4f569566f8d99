"""Where sage-emacs keeps conversations and saved sessions, and the ids it does not give them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePath, PurePosixPath
from typing import TypeVar

from clew.agents.backups import is_plain_file
from clew.agents.base import Header, SourceFile, source_at
from clew.agents.derived_ids import derived_id
from clew.agents.sage_format import METADATA as METADATA
from clew.agents.sage_format import normalized_time, read_metadata
from clew.host import Host
from clew.io.compress import open_source, plain_name
from clew.io.paths import encode_sage, file_name, safe_relative
from clew.io.records import read_records
from clew.model.json import JSON

_AnyPath = TypeVar("_AnyPath", bound=PurePath)
AGENT = "sage-emacs"
CONVERSATION = "conversation.jsonl"
HISTORY = "history"
_PROJECTS = "projects"
SESSIONS = "sessions"
"""The folder of sessions that were saved under a name, each of which is one JSON document."""

_STAMP = re.compile(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)")
PLAIN, XDG = ".emacs.d", ".config/emacs"
"""The two folders of which Emacs reads one, below a home."""
_SAGE = "sage"
_STORES = {PLAIN: _SAGE, XDG: _SAGE, ".sage": "", ".claude": ""}
"""The base folders of all storage presets below a home, each with the path of the store in it."""
_BASES = {PurePath(base).name: base for base in _STORES}
"""The base folders by their names: the home may be anywhere, and so may the XDG configuration folder."""


def based(base: str, host: Host) -> Path:
    """The path of a base folder on a host, whose environment may set the XDG configuration folder."""
    configured = host.env.get("XDG_CONFIG_HOME")
    return Path(configured) / PurePath(XDG).name if base == XDG and configured else host.home / base


def roots(host: Host) -> Iterator[Path]:
    """The folders of all storage presets, two of which are shared with other agents, then those of saved sessions."""
    yield from (based(base, host) / store / _PROJECTS for base, store in _STORES.items())
    yield from (based(base, host) / store / SESSIONS for base, store in _STORES.items() if store)


def source_file(path: Path) -> SourceFile:
    """The session in a conversation, archive or document; the metadata describe the current conversation only."""
    is_current = plain_name(path.name) == CONVERSATION and not is_archive(path)
    sides = (METADATA,) if is_current and is_plain_file(path.parent / METADATA) else ()
    return source_at(AGENT, path, sides)


def stem(path: PurePath) -> str:
    """The file name without .jsonl or .json and compression suffixes."""
    return plain_name(path.name).removesuffix(".json" if is_saved(path) else ".jsonl")


def is_archive(path: PurePath) -> bool:
    """True for an archived conversation."""
    return path.parent.name == HISTORY and not is_saved(path)


def is_saved(path: PurePath) -> bool:
    """True for a session that was saved as one document; all else are lines."""
    return plain_name(path.name).endswith(".json")


def is_saved_folder(folder: Path) -> bool:
    """True for a folder of saved sessions."""
    return folder.name == SESSIONS and folder.parent.name == _SAGE


def target(header: Header) -> PurePosixPath:
    """The path of a session below a home: sage-emacs' own as recorded, any other as the conversation of its folder.

    A session that is continued under another id has no recorded path, but still the folder of its project. Only names
    are taken from a recorded path, as its home may be anywhere.
    """
    session = header.session
    folder = str(session.get("workspace_encoded") or "") if header.agent == AGENT else ""
    recorded = (session.get("source") or {}).get("path") if folder else None
    path = PurePosixPath(recorded.replace("\\", "/")) if isinstance(recorded, str) and recorded else None
    base = PLAIN if path is None else _base_of(path)
    if path is not None and is_saved(path):
        return PurePosixPath(base, _STORES[base], SESSIONS, f"{safe_relative(stem(path))}.json")
    encoded = folder or encode_sage(str(session["workspace"])) or str(session.get("workspace_encoded") or "")
    project = PurePosixPath(base, _STORES[base], _PROJECTS, file_name(encoded or "-"))
    if path is not None and is_archive(path):
        return project / HISTORY / f"{safe_relative(stem(path))}.jsonl"
    return project / CONVERSATION


def _base_of(path: PurePath) -> str:
    """The base folder that a recorded path lies in; that of new sessions where it lies in none."""
    place = path.parent if is_saved(path) else project_folder(path).parent
    store = place.parent
    if place.name != (SESSIONS if is_saved(path) else _PROJECTS) or (is_saved(path) and store.name != _SAGE):
        return PLAIN
    folder, within = (store.parent, _SAGE) if store.name == _SAGE else (store, "")
    base = _BASES.get(folder.name, PLAIN)
    return base if _STORES[base] == within else PLAIN


def project_folder(path: _AnyPath) -> _AnyPath:
    """The project's folder in the store."""
    return path.parent.parent if is_archive(path) else path.parent


def archive_time(path: Path) -> str | None:
    """When an archive was made, by its name. The name does not tell the zone, so it is taken as UTC."""
    match = _STAMP.fullmatch(stem(path)) if is_archive(path) else None
    return normalized_time(match.expand(r"\1-\2-\3T\4:\5:\6Z")) if match else None


def session_id(source: SourceFile) -> str:
    """The id that the first record of a conversation claims, else one derived from where the file lies.

    The derived id is the same for the same file name in the same project folder of the same kind of store, in any home.
    """
    path = source.path
    claimed = None if is_saved(path) else claimed_id(path)
    if claimed is not None:
        return claimed
    folder = project_folder(path)
    parts = folder.parent.parts
    bases = [at for at, part in enumerate(parts) if part in _BASES]
    store = "/".join(parts[bases[-1] :]) if bases else folder.parent.as_posix()
    name = f"{HISTORY}/{stem(path)}" if is_archive(path) else plain_name(path.name) if is_saved(path) else stem(path)
    return derived_id(store, folder.name, name)


def scope(path: Path) -> str:
    """What derived message ids are unique in: the project, under its old or aligned name, with its archives.

    Saved sessions of all projects lie in one folder, so each is a scope of its own.
    """
    if is_saved(path):
        return f"{SESSIONS}/{stem(path)}"
    return re.sub(r"[/.]", "-", project_folder(path).name).rstrip("-")


def claimed_id(path: Path) -> str | None:
    """The session id that the first record claims."""
    with open_source(path) as stream:
        for record in read_records(stream):
            if record.value is not None:
                claims = (record.value.get("session_id"), record.value.get("sessionId"))
                return next((claim for claim in claims if isinstance(claim, str) and claim), None)
    return None


def metadata(path: Path) -> dict[str, JSON] | None:
    """The project's metadata; empty where there are none, None where they cannot be read."""
    # A file of that name beside a saved session is another saved session.
    return {} if is_saved(path) else read_metadata(project_folder(path))
