"""What a conversation of sage-emacs proves about files: the calls of its tools. It keeps no copies.

Emacs decides how a file is encoded and how its lines end, so that what was written is known as text.
"""

from __future__ import annotations

from collections.abc import Iterator

from clew.agents.base import SourceFile, Unit
from clew.agents.evidence import Event
from clew.agents.sage_emacs.locate import metadata
from clew.agents.simple_tools import Work
from clew.derive.native import metadata_of


def evidence(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a conversation proves, in its order."""
    work = Work(exact=False)
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
