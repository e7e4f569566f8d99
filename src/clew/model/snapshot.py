"""What an agent noted about files at one message, so that they can be put back."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from clew.model.base import Part


class TrackedFile(Part, kw_only=True):
    """One file of a snapshot. `backup` null: the file did not exist then."""

    backup: Annotated[str | None, Meta(description="Name or path of the copy made before the change.")] | UnsetType = (
        UNSET
    )
    version: int | UnsetType = UNSET
    time: str | None | UnsetType = UNSET
    state: Annotated[str, Meta(description="created, modified, deleted or unchanged.")] | UnsetType = UNSET
    original_content: str | None | UnsetType = UNSET
    original_hash: str | None | UnsetType = UNSET
    content_hash: str | None | UnsetType = UNSET
    size: int | UnsetType = UNSET


class Snapshot(Part, kw_only=True):
    """The files an agent tracked at one message."""

    message_uuid: str | None | UnsetType = UNSET
    timestamp: str | None | UnsetType = UNSET
    is_update: Annotated[bool, Meta(description="Adds to an earlier snapshot instead of replacing it.")] | UnsetType = (
        UNSET
    )
    files: dict[str, TrackedFile] | UnsetType = UNSET
