"""What the calls of tools say about files and task lists, from their arguments alone; the same for every agent."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Arguments = dict[str, Any]

_PATHS = ("file_path", "notebook_path", "absolute_path", "path", "filename", "file")
_WRITES = frozenset({"write", "write_file", "create_file"})
_EDITS = frozenset({"edit", "edit_file", "replace", "str_replace", "multiedit", "notebookedit"})
_DELETES = frozenset({"delete_file", "remove_file"})
_PATCH = "*** Begin Patch"
_HEADS = {"*** Add File: ": "create", "*** Update File: ": "edit", "*** Delete File: ": "delete"}
_GONE = {head: None if op == "delete" else 0 for head, op in _HEADS.items()}
"""How many lines go with what a patch begins with; nobody tells how long a file was."""
_LISTS = {"TodoWrite": "todos", "update_plan": "plan", "write_todos": "todos"}
_OLD, _NEW = ("old_string", "old_str", "old"), ("new_string", "new_str", "new", "new_source")
_CONTENT = ("content", "file_text", "text")


class Change(namedtuple("Change", "path op added removed")):
    """What a call is to do to a file: its path; create, edit or delete; lines that come and go, None where unknown."""

    __slots__ = ()


def changes_of(name: str, given: Arguments) -> list[Change]:
    """The changes that a call asks for."""
    tool = name.lower()
    if tool in _WRITES:
        content = _first_text(given, _CONTENT)
        return [Change(path, "edit", None if content is None else _lines(content), 0) for path in _path(given)]
    if tool in _EDITS:
        added, removed = _edited(given)
        return [Change(path, "edit", added, removed) for path in _path(given)]
    if tool in _DELETES:
        return [Change(path, "delete", 0, None) for path in _path(given)]
    patches = [value for value in _strings(given) if _PATCH in value]
    return [change for patch in patches for change in _patched(patch)]


def is_write(name: str) -> bool:
    """True for a tool that writes whole files: its answer tells whether the file is new."""
    return name.lower() in _WRITES


def files_of(given: Arguments) -> Iterator[str]:
    """The files that a call names."""
    return _path(given)


def todos_of(name: str, given: Arguments) -> list[tuple[str, str]]:
    """The task list that a call writes: content and status of each item."""
    items = given.get(_LISTS[name]) if name in _LISTS else None
    return [_todo(item) for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _todo(item: Arguments) -> tuple[str, str]:
    content = next((item[key] for key in ("content", "step", "description") if isinstance(item.get(key), str)), "")
    status = item.get("status")
    return content, status if isinstance(status, str) else ""


def _path(given: Arguments) -> Iterator[str]:
    for key in _PATHS:
        value = given.get(key)
        if isinstance(value, str) and value:
            yield value
            return


def _first_text(given: Arguments, names: tuple[str, ...]) -> str | None:
    return next((given[name] for name in names if isinstance(given.get(name), str)), None)


def _lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n")) if text else 0


def _edited(given: Arguments) -> tuple[int | None, int | None]:
    edits = given.get("edits")
    pairs = [given] if not isinstance(edits, list) else [edit for edit in edits if isinstance(edit, dict)]
    added = removed = 0
    for pair in pairs:
        old, new = _first_text(pair, _OLD), _first_text(pair, _NEW)
        if old is None and new is None:
            return None, None
        more, less = _difference(old or "", new or "")
        added, removed = added + more, removed + less
    return added, removed


def _difference(old: str, new: str) -> tuple[int, int]:
    """How many lines came and went, without those that both begin and end with."""
    before, after = old.split("\n") if old else [], new.split("\n") if new else []
    start, least = 0, min(len(before), len(after))
    while start < least and before[start] == after[start]:
        start += 1
    end = 0
    while end < least - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return len(after) - start - end, len(before) - start - end


def _strings(given: Arguments) -> Iterator[str]:
    for value in given.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from (each for each in value if isinstance(each, str))


def _patched(patch: str) -> Iterator[Change]:
    found: list[Any] | None = None
    for line in patch.split("\n"):
        head = next((head for head in _HEADS if line.startswith(head)), None) if line.startswith("*** ") else None
        if head is not None or line.startswith("*** End Patch"):
            if found is not None:
                yield Change(*found)
            found = [line[len(head) :].strip(), _HEADS[head], 0, _GONE[head]] if head is not None else None
        elif found is not None and found[1] != "delete":
            found[2] += line.startswith("+")
            found[3] += line.startswith("-")
    if found is not None:
        yield Change(*found)
