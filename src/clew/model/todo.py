"""One item of a task list, whatever era of whatever agent wrote it."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from clew.model.base import Part


class Todo(Part, kw_only=True):
    """All fields are optional: the eras differ in what they keep."""

    content: str | UnsetType = UNSET
    status: Annotated[str, Meta(description="pending, in_progress or completed; others are kept.")] | UnsetType = UNSET
    active_form: str | None | UnsetType = UNSET
    priority: str | None | UnsetType = UNSET
    id: str | None | UnsetType = UNSET
