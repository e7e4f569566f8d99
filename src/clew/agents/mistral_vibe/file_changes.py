"""What a session of Mistral Vibe proves about files: the calls of its tools. It keeps no copies."""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.base import SourceFile, Unit
from clew.agents.file_evidence import Event, first_text
from clew.agents.tool_file_changes import CommonToolFileChanges
from clew.model.json import object_at


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a session proves, in its order."""
    return _VibeFileChanges().events(units)


class _VibeFileChanges(CommonToolFileChanges):
    def folder_of(self, unit: Unit) -> str | None:
        is_session = not unit.is_message and unit.value.get("type") == "meta"
        return first_text(object_at(unit.native, "environment"), "working_directory") if is_session else None
