"""What a conversation of sage-emacs proves about files: the calls of its tools. It keeps no copies.

Emacs decides how a file is encoded and how its lines end, so that what was written is known as text.
"""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.base import SourceFile, Unit
from clew.agents.edits import writing
from clew.agents.file_evidence import Edit, Event, first_text
from clew.agents.sage_emacs.locate import is_saved, metadata
from clew.agents.sage_emacs.records import document_records
from clew.agents.tool_file_changes import CommonToolFileChanges, ToolCall


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a conversation proves, in its order."""
    if is_saved(source.path):
        header = next(document_records(source), None)
        folder = first_text((header.value if header is not None else None) or {}, "workspace")
    else:
        folder = first_text(metadata(source.path) or {}, "project_dir")
    return _SageEmacsFileChanges(folder).events(units)


class _SageEmacsFileChanges(CommonToolFileChanges):
    def edit_by_writing(self, call: ToolCall, content: str) -> Edit:
        return writing(content)
