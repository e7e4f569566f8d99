"""The session store of Mistral Vibe 3 as typed records.

A session is a folder. `meta.json` describes it. The journal is a chain of records: requests to the model, calls of
tools, their results, and changes of the *projection*, the list of entries that the client shows. Snapshots
(`generations`) name the chunks that hold the projection up to a sequence number; older journals may be gone then. The
modules of this package know the key names, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from clew.io.typed_records import RecordDecoder, TokenCount, unknown_in
from clew.model.json import JSON

NO_ARRAY = ("records",)
"""`meta.json` has no such array, so that all of it is one record."""
JOURNAL_TYPES = frozenset(
    "command_reserved core_input projection_delta action_intent action_result receipt_succeeded receipt_failed".split()
)
_OPTIONAL = str | None


class Environment(Struct):
    working_directory: _OPTIONAL = None


class Config(Struct):
    active_model: _OPTIONAL = None
    model_name: _OPTIONAL = None


class SessionMeta(Struct):
    """`meta.json`."""

    session_id: _OPTIONAL = None
    parent_session_id: _OPTIONAL = None
    start_time: Any = None
    end_time: Any = None
    git_branch: _OPTIONAL = None
    environment: Environment | None = None
    origin_directory: _OPTIONAL = None
    title: _OPTIONAL = None
    config: Config | None = None


class Current(Struct):
    """`CURRENT`: the newest snapshot."""

    generation: str = ""
    snapshot_sequence: int = 0


class Chunks(Struct):
    chunks: list[str] = []


class Manifest(Struct):
    """What a snapshot consists of."""

    projection_state: Chunks | None = None


class Usage(Struct):
    """`input_tokens` includes what was read from a cache."""

    input_tokens: TokenCount | UnsetType = UNSET
    output_tokens: TokenCount | UnsetType = UNSET
    cached_input_tokens: TokenCount | UnsetType = UNSET


class TotalUsage(Struct, rename="camel"):
    """The same for the whole session, as the projection has it."""

    input_tokens: TokenCount | UnsetType = UNSET
    output_tokens: TokenCount | UnsetType = UNSET
    cached_input_tokens: TokenCount | UnsetType = UNSET


class ProjectedSession(Struct, rename="camel"):
    token_usage: TotalUsage | None = None


class ProjectionSnapshot(Struct):
    session: ProjectedSession | None = None


class ProjectionState(Struct):
    """`projection-state.json` of a snapshot; its entries are in chunks."""

    snapshot: ProjectionSnapshot | None = None


class Action(Struct):
    """What the client did. It removes requests and results from snapshots, but not the actions."""

    action_id: _OPTIONAL = None
    kind: _OPTIONAL = None
    state: _OPTIONAL = None


class RuntimeState(Struct):
    """`runtime-state.json` of a snapshot."""

    actions: Any = None


class Part(Struct):
    """A part of a reply, or of the content of an entry."""

    type: _OPTIONAL = None
    text: _OPTIONAL = None
    id: _OPTIONAL = None
    name: _OPTIONAL = None
    arguments_json: _OPTIONAL = None


class ActionOutcome(Struct):
    """The reply of the model, or the result of a tool."""

    parts: Any = None
    usage: Usage | None = None


class ActionResult(Struct):
    type: _OPTIONAL = None
    call_id: _OPTIONAL = None
    result: ActionOutcome | None = None


class JournalPayload(Struct):
    action_id: _OPTIONAL = None
    result: ActionResult | None = None
    delta: Any = None


class JournalRecord(Struct):
    """A line of the journal."""

    type: _OPTIONAL = None
    sequence: int = 0
    payload: JournalPayload | None = None


JOURNAL = RecordDecoder(JournalRecord)


class Delta(Struct):
    """A change of the projection."""

    op: _OPTIONAL = None
    entry: Any = None


class ToolDetail(Struct):
    kind: _OPTIONAL = None
    toolName: _OPTIONAL = None
    input: Any = None


class ToolOutput(Struct):
    type: _OPTIONAL = None
    content: Any = None
    structured_content: Any = None


class EffectState(Struct):
    status: _OPTIONAL = None
    output: ToolOutput | None = None


class Entry(Struct):
    """An entry of the projection."""

    id: _OPTIONAL = None
    type: _OPTIONAL = None
    role: _OPTIONAL = None
    content: Any = None
    text: _OPTIONAL = None
    detail: ToolDetail | None = None
    state: EffectState | None = None
    createdAt: Any = UNSET
    updatedAt: Any = UNSET


# Keys that the client is known to write and that clew does not decode; all others are signs of a new format

_META_KEYS = frozenset(
    "git_commit username child_sessions loops title_source bumped_at pinned_at archived_at unseen_at seen_at "
    "experiments import_provenance created_worktree artifacts".split()
)
_JOURNAL_KEYS = frozenset("previous_record_sha256 record_sha256 recovery_journal_record_version".split())
_ENTRY_KEYS = frozenset(
    "generationStatus inputEntryId relatedEntryId sessionId source turnId outcome summary title queueItemId".split()
)


def find_unknown_keys(record: Mapping[str, JSON]) -> Iterator[str]:
    """The keys of a record that are not known, each behind the name of the object that holds it."""
    if "session_id" in record:
        yield from unknown_in("meta", record, SessionMeta, _META_KEYS)
    elif "sequence" in record:
        yield from unknown_in("journal", record, JournalRecord, _JOURNAL_KEYS)
        payload = record.get("payload")
        deltas = payload.get("delta") if isinstance(payload, dict) else None
        for delta in deltas if isinstance(deltas, list) else ():
            if isinstance(delta, dict):
                yield from unknown_in("entry", delta.get("entry"), Entry, _ENTRY_KEYS)
    else:
        yield from unknown_in("entry", record, Entry, _ENTRY_KEYS)
