"""What a conversation of sage-emacs proves about files: the calls of its tools. It keeps no copies.

Emacs decides how a file is encoded and how its lines end, so that what was written is known as text.
"""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.base import SourceFile, Unit
from clew.agents.file_evidence import Event
from clew.agents.sage_emacs.locate import is_saved, metadata
from clew.agents.sage_emacs.records import document_records
from clew.agents.tool_file_changes import ToolFileChanges
from clew.analysis.messages import metadata_of


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a conversation proves, in its order."""
    work = ToolFileChanges(exact=False)
    if is_saved(source.path):
        header = next(document_records(source), None)
        recorded = ((header.value if header is not None else None) or {}).get("workspace")
    else:
        recorded = (metadata(source.path) or {}).get("project_dir")
    folder = recorded if isinstance(recorded, str) else None
    for unit in units:
        if not unit.is_message:
            continue
        message = unit.value
        folder = metadata_of(message).get("cwd") or folder
        for block in message["content"]:
            if block["type"] == "tool_use":
                yield from work.called(block, message["index"], folder)
            elif block["type"] == "tool_result":
                yield from work.returned(block, message["index"])
