"""What sage-emacs can represent of other agents' sessions, and where its files go."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clew.agents.sage_emacs import locate
from clew.agents.target_profile import Capacity, TargetProfile
from clew.errors import WouldLose
from clew.host import Host
from clew.io.codec import NOT_JSON, dumps, loads
from clew.io.compress import SUFFIXES


def _resumes_file(path: Path, _parts: Sequence[str]) -> bool:
    """True for a current conversation with a session id; older ones have none.

    The program is started with the conversation of a folder, never with an archive or a saved session.
    """
    is_other = locate.is_archive(path) or locate.is_saved(path)
    return not is_other and locate.claimed_id(path) is not None


def _can_find_by_id(path: Path, _identity: str) -> bool:
    return path.suffix not in SUFFIXES and not locate.is_saved(path)


def _main_path(place: str, host: Host) -> Path:
    """Emacs reads its XDG folder only if neither ~/.emacs.d nor ~/.emacs exists.

    So a session goes to the one of both folders that exists: creating the other might hide it.
    """
    base = next((base for base in (locate.XDG, locate.PLAIN) if place.startswith(f"{base}/")), None)
    if base is None:
        return host.home / place
    other = locate.PLAIN if base == locate.XDG else locate.XDG
    is_moved = locate.based(other, host).is_dir() and not locate.based(base, host).exists()
    is_read = other == locate.PLAIN or not (host.home / ".emacs").exists()
    return locate.based(other if is_moved and is_read else base, host) / place.removeprefix(f"{base}/")


def _merged_metadata(before: bytes, content: bytes) -> bytes:
    """Metadata that are left after a conversation was archived, updated for the next one; other keys stay."""
    try:
        known, new = loads(before), loads(content)
    except NOT_JSON:
        known = None
    if not isinstance(known, dict):
        raise WouldLose(f"{locate.METADATA} cannot be read and would be overwritten")
    return content if known.keys() <= new.keys() else dumps({**known, **new}) + b"\n"


# The program continues the conversation of the folder that it is started in; there is no other name for it.
TARGET_PROFILE = TargetProfile(
    capacity=Capacity(failures=True, instructions=True),
    tools=(),
    id_keys=("session_id", "sessionId"),
    resume=lambda _session: ["emacs", "--eval", "(sage)"],
    resumes_file=_resumes_file,
    main_path=_main_path,
    merged_files={locate.METADATA: _merged_metadata},
    can_find_by_id=_can_find_by_id,
)
