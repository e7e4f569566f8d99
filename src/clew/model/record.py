"""A record of the source that is not a message, kept in its place so that the file can be rebuilt."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from clew.model.base import Part
from clew.model.json import Extensions
from clew.model.message import SourceRef
from clew.model.snapshot import Snapshot

ORIGIN = "clew-origin"
"""The type of the records that carry the original of a converted session."""
KINDS = "title, summary, snapshot, prompt, queue, progress, state, rewind, copy, cost, link or other."


class Record(Part, kw_only=True):
    """A title, snapshot, progress note, setting, or a fragment that could not be read."""

    after: Annotated[int, Meta(description="Index of the message it follows; 0 = before the first.", ge=0)]
    kind: Annotated[str, Meta(description=KINDS)]
    type: Annotated[str | None, Meta(description="The agent's own name for it.")] | UnsetType = UNSET
    uuid: str | None | UnsetType = UNSET
    parent_uuid: str | None | UnsetType = UNSET
    timestamp: str | None | UnsetType = UNSET
    text: Annotated[str | None, Meta(description="The title, summary or prompt it holds.")] | UnsetType = UNSET
    message_uuid: Annotated[str | None, Meta(description="The message it speaks of.")] | UnsetType = UNSET
    snapshot: Snapshot | UnsetType = UNSET
    source: SourceRef | UnsetType = UNSET
    extensions: Extensions | UnsetType = UNSET
