"""What sage-emacs can hold of other agents' sessions."""

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
    """True for a conversation whose records say which: an archive is not gone on with, and what has no id is older.

    Nor is a saved session: the program is started with the conversation of a folder.
    """
    is_other = locate.is_archive(path) or locate.is_saved(path)
    return not is_other and locate.claimed_id(path) is not None


def _finds(path: Path, _identity: str) -> bool:
    return path.suffix not in SUFFIXES and not locate.is_saved(path)


def _main_path(place: str, host: Host) -> Path:
    """Emacs looks into the folder of the XDG standard only where it finds no older one, nor the oldest of its files.

    So it would look no more into its own folder, were the other one made for it.
    """
    base = next((base for base in (locate.XDG, locate.PLAIN) if place.startswith(f"{base}/")), None)
    if base is None:
        return host.home / place
    other = locate.PLAIN if base == locate.XDG else locate.XDG
    is_moved = locate.based(other, host).is_dir() and not locate.based(base, host).exists()
    is_read = other == locate.PLAIN or not (host.home / ".emacs").exists()
    return locate.based(other if is_moved and is_read else base, host) / place.removeprefix(f"{base}/")


def _merged_metadata(before: bytes, content: bytes) -> bytes:
    """What stayed behind when a conversation was archived describes the next one; keys beyond those stay."""
    try:
        known, new = loads(before), loads(content)
    except NOT_JSON:
        known = None
    if not isinstance(known, dict):
        raise WouldLose(f"{locate.METADATA} cannot be read, and would have to be replaced")
    return content if known.keys() <= new.keys() else dumps({**known, **new}) + b"\n"


# It goes on with the conversation of the folder it is started in; a conversation has no other name.
TARGET_PROFILE = TargetProfile(
    Capacity(failures=True, instructions=True),
    (),
    ("session_id", "sessionId"),
    lambda _session: ["emacs", "--eval", "(sage)"],
    _resumes_file,
    main_path=_main_path,
    merged_files={locate.METADATA: _merged_metadata},
    finds=_finds,
)
