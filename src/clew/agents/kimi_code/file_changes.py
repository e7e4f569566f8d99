"""What a session of Kimi Code proves about files: its calls, and the copies in `file-history`.

The client copies a file before it changes it first, and again when the turn ends. A reading shows numbered lines, and
not whether the last of them ends: it proves no content.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path

from clew.agents.backups import is_behind_link, read_copy
from clew.agents.base import SourceFile, Unit
from clew.agents.edits import Replacement, plain, replacing, with_line_endings_of, writing
from clew.agents.file_evidence import (
    ABSENT,
    Edit,
    Event,
    FileChange,
    FileContent,
    KnownContent,
    absolute,
    first_text,
    snapshot,
)
from clew.agents.kimi_code import locate
from clew.agents.tool_file_changes import ToolCall, ToolFileChanges
from clew.model.json import JSON, object_at


def file_changes(source: SourceFile, units: Iterator[Unit]) -> Iterator[Event]:
    """Everything a session proves, in its order."""
    return _KimiFileChanges(source.path).events(units)


class _KimiFileChanges(ToolFileChanges):
    reads, writes, edits = ("Read",), ("Write",), ("Edit",)
    read_only_tools = frozenset(
        "ReadMediaFile Glob Grep TodoList FetchURL WebSearch AskUserQuestion EnterPlanMode ExitPlanMode CreateGoal "
        "GetGoal UpdateGoal SetGoalBudget CronCreate CronDelete CronList TaskList TaskOutput WaitFor NotifyUser "
        "Skill".split()
    )

    def __init__(self, path: Path) -> None:
        super().__init__()
        history = locate.agent_folder(path) / locate.FILE_HISTORY
        self._history = None if is_behind_link(history, path) else history

    def folder_of(self, unit: Unit) -> str | None:
        """The folder that `state.json` or the beginning of a journal names; copies are relative to the first."""
        if self.folder is not None or unit.is_message:
            return None
        environment = object_at(unit.native, "environmentDisclosure")
        return first_text(unit.native, "cwd", "workDir") or first_text(environment, "cwd", "workDir")

    def record(self, unit: Unit) -> Iterator[Event]:
        if unit.value.get("type") == "file_history.tracked":
            yield from self._copy(unit.native.get("path"), unit.native.get("entry"))
        elif unit.value.get("type") == "file_history.checkpoint":
            for name, entry in object_at(unit.native, "entries").items():
                yield from self._copy(name, entry)

    def _copy(self, name: JSON, entry: JSON) -> Iterator[Event]:
        """A file as it was at this place; a copy without a key says that there was none."""
        if isinstance(name, str) and isinstance(entry, dict):
            key = entry.get("key", "")
            file = key.removeprefix(f"{locate.FILE_HISTORY}/") if isinstance(key, str) else None
            content = ABSENT if key is None else read_copy(self._history, file)
            yield snapshot(absolute(name, self.folder), self.index, content)

    def keeps_running(self, call: ToolCall) -> bool:
        return call.input.get("run_in_background") is True

    def edit_by_writing(self, call: ToolCall, content: str) -> Edit:
        return _appending(content) if call.input.get("mode") == "append" else super().edit_by_writing(call, content)

    def change_by_edit(self, call: ToolCall) -> FileChange:
        replacements = self.replacements(call)
        return call.change("change", "edit", edit=_replacing(replacements) if replacements else None)


def _appending(text: str) -> Edit:
    def edit(base: KnownContent | None) -> KnownContent | None:
        if base is ABSENT:
            return writing(text)(base)
        before = plain(base)
        return with_line_endings_of(before + text, base) if before is not None else None

    return edit


def _replacing(replacements: list[Replacement]) -> Edit:
    replace = replacing(replacements)

    def edit(base: KnownContent | None) -> KnownContent | None:
        done = replace(base)
        # The client does not write the byte order mark that it read.
        return done._replace(body=done.body.removeprefix(BOM_UTF8)) if isinstance(done, FileContent) else done

    return edit
