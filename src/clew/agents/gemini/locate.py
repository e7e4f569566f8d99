"""Which files are one chat, what their names tell, and where sub-agents and saved chats lie."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

from clew.agents.base import SourceFile, file_stem
from clew.agents.derived_ids import derived_id, is_uuid
from clew.agents.folders import file_names
from clew.errors import SourceUnreadable
from clew.io.compress import open_source, plain_name

AGENT = "gemini"
CHATS, LOG = "chats", "logs.json"
_SESSION = re.compile(r"session-(\d{4}-\d\d-\d\dT\d\d-\d\d)-(.+)\.jsonl?")
_SAVED = re.compile(r"checkpoint-?(.*)\.json", re.DOTALL)
_FIRST = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"sessionId"\s*:\s*"([^"\\]+)"')
_LOGGED = re.compile(rb'"sessionId"\s*:\s*"([^"\\]+)"')
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_HEAD_BYTES = 1 << 12
_MAX_LOG_BYTES = 16 << 20
_FIRST_STEPS = 20
"""How many records of a file are searched for the session id."""


def chat_names(folder: Path) -> list[str]:
    """The chats in a folder. Sub-agents are named by their ids; what recovery left behind ends in other ways."""
    is_main = folder.name == CHATS
    names = [name for name in file_names(folder) if plain_name(name).endswith((".json", ".jsonl"))]
    return [name for name in names if not is_main or _SESSION.fullmatch(plain_name(name))]


def short_id(name: str) -> str:
    """The beginning of the session's id, which the name of a chat ends in; a sub-agent's is whole."""
    match = _SESSION.fullmatch(plain_name(name))
    return match.group(2) if match else file_stem(Path(name))


def group_sessions(folder: Path, names: list[str]) -> Iterator[list[str]]:
    """The files of each session, in order of time. Only names that may belong together are looked into."""
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(short_id(name), []).append(name)
    for group in alike.values():
        if len(group) == 1:
            yield group
            continue
        of: dict[str, list[str]] = {}
        for name in group:
            of.setdefault(claimed_id(folder / name) or name, []).append(name)
        yield from (sorted(each, key=_order) for each in of.values())


def _order(name: str) -> tuple[str, bool, str]:
    match = _SESSION.fullmatch(plain_name(name))
    return match.group(1) if match else "", plain_name(name).endswith(".jsonl"), name


def source_of(folder: Path, names: list[str]) -> SourceFile:
    """The session in some files of a folder."""
    size, mtime = 0, 0.0
    for name in names:
        with suppress(OSError):
            stat = (folder / name).stat()
            size = stat.st_size if name == names[0] else size
            mtime = max(mtime, stat.st_mtime)
    return SourceFile(AGENT, folder / names[0], tuple(names[1:]), (), size, mtime)


def is_chat(path: Path) -> bool:
    """True for a file in the place of a chat or of a sub-agent."""
    return path.parent.name == CHATS or path.parent.parent.name == CHATS


def is_log(path: Path) -> bool:
    """True for a log of prompts."""
    return plain_name(path.name).endswith(LOG)


def parent_folder(path: Path) -> str | None:
    """The name of the folder between chats/ and a sub-agent."""
    return path.parent.name if path.parent.parent.name == CHATS else None


def project_folder(path: Path) -> Path:
    """The project's folder, which holds chats/ and saved chats."""
    if path.parent.name == CHATS:
        return path.parent.parent
    return path.parent.parent.parent if path.parent.parent.name == CHATS else path.parent


def relative_name(path: Path) -> str:
    """The file's name in its project's folder."""
    name = plain_name(path.name)
    if path.parent.name == CHATS:
        return f"{CHATS}/{name}"
    if path.parent.parent.name == CHATS:
        return f"{CHATS}/{path.parent.name}/{name}"
    return LOG if is_log(path) else name


def saved_tag(path: Path) -> str | None:
    """The name a chat was saved under; a percent sign that escapes nothing stands for itself."""
    match = _SAVED.fullmatch(plain_name(path.name))
    return unquote(match.group(1)) if match else None


def file_time(path: Path) -> str | None:
    """The minute a chat began, by its name."""
    match = _SESSION.fullmatch(plain_name(path.name))
    return f"{match.group(1)[:13]}:{match.group(1)[14:]}:00Z" if match else None


def session_id(source: SourceFile) -> str:
    """The id that the session claims; saved chats and logs have none, and get one from their place."""
    path = source.path
    if saved_tag(path) is not None:
        return derived_id(AGENT, project_folder(path).name, "saved", saved_tag(path))
    if is_log(path):
        return derived_id(AGENT, project_folder(path).name, "log")
    return claimed_id(path) or file_stem(path)


def claimed_id(path: Path) -> str | None:
    """The session id that the first header claims."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return _read_claim(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(512)
def _read_claim(path: Path, _changed: int, _size: int) -> str | None:
    try:
        with open_source(path, _HEAD_BYTES) as stream:
            match = _FIRST.match(stream.read(_HEAD_BYTES))
        if match:
            return match.group(1).decode("utf-8", "replace")
        from clew.agents.gemini.records import first_session_id

        return first_session_id(SourceFile(AGENT, path), _FIRST_STEPS)
    except (OSError, SourceUnreadable):
        return None


def known_chats(project: Path) -> frozenset[str]:
    """The first characters of the ids of all chats that are there."""
    return frozenset(short_id(name) for name in chat_names(project / CHATS))


def gone_sessions(log: Path) -> set[str]:
    """The sessions of a log of prompts that have no chat any more."""
    try:
        with open_source(log) as stream:
            found = {name.decode("utf-8", "replace") for name in _LOGGED.findall(stream.read(_MAX_LOG_BYTES))}
    except (OSError, SourceUnreadable):
        return set()
    # The names of chats hold eight characters of the id.
    chats = known_chats(log.parent)
    return {session for session in found if session[:8] not in chats}


def is_own_path(path: Path, session: str) -> bool:
    """True for a path in the place of a file that holds the session with this id; the file need not exist.

    A converted session names the path of its original, but has a random id, which the name of its own file ends in.
    """
    if is_chat(path):
        return not is_uuid(session) or short_id(path.name) in (session[:8], session)
    return (saved_tag(path) is not None or is_log(path)) and session_id(SourceFile(AGENT, path)) == session


def safe_id(session: str) -> str:
    """An id as it is spelled in names of folders and files."""
    return _UNSAFE.sub("_", session)


def subagent_files(path: Path, session: str) -> Iterator[Path]:
    """The sub-agents that a session started, by their place."""
    chats = path.parent
    if chats.name == CHATS and (folder := chats / safe_id(session)).is_dir():
        yield from (folder / group[0] for group in group_sessions(folder, chat_names(folder)))


def named_after(path: Path, agent: str) -> Iterator[Path]:
    """Chats in the same folder whose names fit an agent's id: for some time sub-agents lay there."""
    for name in chat_names(path.parent) if path.parent.name == CHATS else ():
        if short_id(name) == agent[:8] and name != path.name:
            yield path.parent / name


def caller(path: Path, agent: str) -> str | None:
    """The session beside whose calls name this agent; for sub-agents that lie among the chats."""
    pattern = re.compile(rb'"agentId"\s*:\s*' + re.escape(f'"{agent}"'.encode()))
    for name in chat_names(path.parent) if path.parent.name == CHATS else ():
        if name == path.name:
            continue
        with suppress(OSError, SourceUnreadable), open_source(path.parent / name) as stream:
            if pattern.search(stream.read()):
                return claimed_id(path.parent / name)
    return None
