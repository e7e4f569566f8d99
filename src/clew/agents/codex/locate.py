"""Where Codex keeps its rollouts, what their names tell, and whether a file is one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from clew.agents.backups import is_link
from clew.agents.base import Claim, SourceFile, source_at
from clew.host import Host
from clew.io.codec import NOT_JSON, loads
from clew.io.compress import plain_name
from clew.io.paths import walk

AGENT = "codex"
SESSIONS, ARCHIVED = "sessions", "archived_sessions"
THREAD_INDEX = "session_index.jsonl"
"""The list of thread names, beside the folders of the rollouts."""

_NAME = re.compile(r"rollout-(\d{4}-\d\d-\d\d(?:T\d\d-\d\d-\d\d)?)-([^_]+)(?:_(.+))?")
_HEAD = re.compile(rb'^[^\n]*"session_meta"[^\n]*', re.MULTILINE)
_UUID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PLAIN = re.compile(r"rollout-.+\.jsonl(?:\.zst|\.gz)?|rollout-\d{4}-\d\d-\d\d-.+\.json")

_LINE_TYPES = frozenset(
    "session_meta turn_context response_item event_msg compacted world_state inter_agent_communication "
    "inter_agent_communication_metadata token_usage_record".split()
)
_CLAIM_LINES = 8
"""So many lines at most decide whether a file is a rollout."""
_ENVELOPE_START = re.compile(
    rb'\s*\{\s*(?:"timestamp"\s*:\s*"[^"]*"\s*,\s*)?(?:"ordinal"\s*:\s*\d+\s*,\s*)?'
    rb'"type"\s*:\s*"(?:session_meta|response_item|event_msg|turn_context|compacted|world_state)"'
)
_BARE_HEAD_START = re.compile(rb'\s*\{\s*"id"\s*:\s*"[^"]*"\s*,\s*"timestamp"\s*:\s*"[^"]*"\s*,\s*"instructions"\s*:')
_DOCUMENT_START = re.compile(rb'\s*\{\s*"session"\s*:\s*\{[^{}]*"id"\s*:[^{}]*"instructions"\s*:')


class Named(NamedTuple):
    """What a file name tells."""

    stamp: str
    thread: str
    rollout: str | None


def roots(host: Host) -> Iterator[Path]:
    """The two folders below Codex's home."""
    configured = host.env.get("CODEX_HOME")
    home = Path(configured).expanduser() if configured else host.home / ".codex"
    yield home / SESSIONS
    yield home / ARCHIVED


def discover(root: Path) -> Iterator[SourceFile]:
    """Every rollout below the root; no links. A packed one is hidden by its plain sibling; nothing is opened."""
    for folder, names, files in walk(root):
        names.sort()
        for name in sorted(files):
            if is_rollout(name) and not (name.endswith(".zst") and name.removesuffix(".zst") in files):
                path = Path(folder) / name
                if not is_link(path):
                    yield source_file(path)


def is_rollout(name: str) -> bool:
    """True for the name of a rollout; staging files begin with a dot."""
    return _PLAIN.fullmatch(name) is not None


def source_file(path: Path) -> SourceFile:
    """The session in a rollout."""
    return source_at(AGENT, path)


def stem(name: str) -> str:
    """A file name without its suffixes."""
    for suffix in (".zst", ".gz", ".jsonl", ".json"):
        name = name.removesuffix(suffix)
    return name


def parse_name(path: PurePath) -> Named | None:
    """Stamp, thread and rollout of a file name; None where it is not named like a rollout."""
    found = _NAME.fullmatch(stem(path.name))
    return Named(found[1], found[2], found[3]) if found else None


def home_of(path: Path) -> Path | None:
    """The Codex home a rollout lies in, by the folders above it."""
    return next((folder.parent for folder in path.parents if folder.name in (SESSIONS, ARCHIVED)), None)


def filed_under(path: Path) -> str:
    """The folder of a rollout below Codex's home, else the name of its folder."""
    home = home_of(path)
    return path.parent.relative_to(home).as_posix() if home is not None else path.parent.name


def find_rollout(near: Path, name: str) -> Path | None:
    """The file of a thread or rollout id in the home of a file; the newest where there are several."""
    home = home_of(near)
    if home is None:
        return None
    found = _INDEXES.get(home, {}).get(name)
    if found is None or not found.exists():
        # What is not known may have come since the folders were listed.
        index = _INDEXES[home] = {}
        for source in (*discover(home / ARCHIVED), *discover(home / SESSIONS)):
            named = parse_name(source.path)
            if named is not None:
                # A replaced rollout is known by its own id; the thread's id means the first file.
                index[named.rollout or named.thread] = source.path
        found = index.get(name)
    return found


_INDEXES: dict[Path, dict[str, Path]] = {}
"""The files of each home by thread or rollout, so that the folders are not listed for every question."""


def beside(path: PurePath, content: bytes, known: Sequence[str]) -> Iterator[str]:
    """The rollouts of the threads whose heads are in this one: comparing shows what it copied from them."""
    named = {uuid.decode() for head in _HEAD.findall(content) for uuid in _UUID.findall(head)}
    own = parse_name(path)
    named -= {own.rollout or own.thread} if own else set()
    for name in known if named else ():
        found = parse_name(PurePath(name))
        if found is not None and (found.rollout or found.thread) in named:
            yield name


def claims(path: Path, head: bytes) -> Claim:
    """How sure it is that the file is a rollout."""
    name = plain_name(path.name)
    if name.endswith(".json"):
        return Claim.YES if _DOCUMENT_START.match(head) else Claim.NO
    if not name.endswith(".jsonl"):
        return Claim.NO
    head = head.removeprefix(b"\xef\xbb\xbf")
    if any(_is_rollout_line(line) for line in head.split(b"\n")[:_CLAIM_LINES]):
        return Claim.YES
    return Claim.MAYBE if not head.strip() and is_rollout(path.name) else Claim.NO


def _is_rollout_line(line: bytes) -> bool:
    """True for a line of a rollout; it may be cut off. The stream of `codex exec --json` has dotted types."""
    if _BARE_HEAD_START.match(line):
        return True
    try:
        record = loads(line)
    except NOT_JSON:
        return _ENVELOPE_START.match(line) is not None
    kind = record.get("type") if isinstance(record, dict) else None
    return isinstance(kind, str) and kind in _LINE_TYPES and isinstance(record.get("payload"), dict)
