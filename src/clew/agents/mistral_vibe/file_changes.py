"""What a session of Mistral Vibe proves about files: the calls of its tools. It keeps no copies."""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.base import SourceFile, Unit
from clew.agents.file_evidence import Event
from clew.agents.tool_file_changes import ToolFileChanges


def file_changes(_source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a session proves, in its order."""
    work = ToolFileChanges(exact=True)
    folder: str | None = None
    for unit in units:
        if not unit.is_message:
            environment = unit.native.get("environment") if unit.value.get("type") == "meta" else None
            found = environment.get("working_directory") if isinstance(environment, dict) else None
            folder = found if isinstance(found, str) else folder
            continue
        for block in unit.value["content"]:
            if block["type"] == "tool_use":
                yield from work.called(block, unit.value["index"], folder)
            elif block["type"] == "tool_result":
                yield from work.returned(block, unit.value["index"])
