"""What an agent noted about files at each message, as one typed model for every spelling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import UNSET

from clew.model import Snapshot, TrackedFile
from clew.model.json import JSON

_BEFORE = ("backup", "version", "time", "original_content", "original_hash")
"""The state before a message comes from the first note about a file, everything else from the last."""


def snapshots(records: Iterable[dict[str, JSON]]) -> Iterator[Snapshot]:
    """Each snapshot record as it was written, in order."""
    for record in records:
        if record.get("kind") == "snapshot":
            snapshot = _stated(record)
            if snapshot is not None:
                yield snapshot


def snapshots_by_message(records: Iterable[dict[str, JSON]]) -> dict[str, Snapshot]:
    """One snapshot for each message it belongs to, with all later updates merged in, in order."""
    merged: dict[str, Snapshot] = {}
    for snapshot in snapshots(records):
        uuid = snapshot.message_uuid
        if isinstance(uuid, str):
            merged[uuid] = merge_snapshots(merged[uuid], snapshot) if uuid in merged else _copy(snapshot)
    return merged


def merge_snapshots(first: Snapshot, later: Snapshot) -> Snapshot:
    """The first with what the later one adds or corrects; no file is ever dropped."""
    files = dict(first.files or {})
    for path, file in (later.files or {}).items():
        files[path] = _merge_file(files[path], file) if path in files and later.is_update else file
    return msgspec.structs.replace(first, files=files)


def _copy(snapshot: Snapshot) -> Snapshot:
    return msgspec.structs.replace(snapshot, files=dict(snapshot.files or {}))


def _merge_file(first: TrackedFile, last: TrackedFile) -> TrackedFile:
    before = {name: value for name in _BEFORE if (value := getattr(first, name)) is not UNSET}
    merged = msgspec.structs.replace(last, **before)
    if isinstance(first.state, str) and isinstance(last.state, str):
        merged.state = _merge_state(first.state, last.state)
    return merged


def _merge_state(first: str, last: str) -> str:
    """What happened to a file over both steps."""
    if first == "created":
        return "unchanged" if last == "deleted" else "created"
    if first == "deleted" and last in ("created", "modified"):
        return "modified"
    return first if last == "unchanged" else last


def _stated(record: dict[str, JSON]) -> Snapshot | None:
    stated = record.get("snapshot")
    if not isinstance(stated, dict):
        return None
    try:
        snapshot = msgspec.convert(stated, Snapshot)
    except msgspec.ValidationError:
        return None
    if snapshot.message_uuid is UNSET:
        snapshot.message_uuid = record.get("message_uuid", UNSET)
    if snapshot.timestamp is UNSET:
        snapshot.timestamp = record.get("timestamp", UNSET)
    return snapshot
