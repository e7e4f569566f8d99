"""Whether a client loaded what a session held: texts, results and answers word for word, calls by what they did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.realclients.history import JSON, Entry

MAIN_ARGUMENTS = ("command", "cmd", "file_path", "path", "pattern", "query", "url", "input")
"""What says most about a call, whatever the tool calls it."""


def said(entries: Iterable[Entry], *, pictures: bool = True) -> list[Entry]:
    """What must survive: everything but thoughts, which only the model that signed them reads again."""
    left_out = ("thinking",) if pictures else ("thinking", "image")
    return one_by_one(entry for entry in entries if entry.kind not in left_out)


def one_by_one(entries: Iterable[Entry]) -> list[Entry]:
    """Each result right after its call: whether calls were made at once or in turn is not what was said."""
    ordered: list[Entry] = []
    waiting: list[Entry] = []
    for entry in entries:
        if entry.kind == "call":
            waiting.append(entry)
            continue
        if entry.kind == "result" and waiting:
            ordered.append(waiting.pop(0))
        elif entry.kind != "image":
            ordered += waiting
            waiting.clear()
        ordered.append(entry)
    return ordered + waiting


def differences(found: Sequence[Entry], expected: Sequence[Entry]) -> list[str]:
    """Where the two differ, in words; nothing if all of it was loaded, in order."""
    pairs = zip(found, expected, strict=False)
    report = [f"{at}: found {have}\n   not {want}" for at, (have, want) in enumerate(pairs) if not _same(have, want)]
    if len(found) != len(expected):
        report.append(f"{len(found)} entries, not {len(expected)}: {_kinds(found)}\n   not {_kinds(expected)}")
    return report


def _same(have: Entry, want: Entry) -> bool:
    if have.kind != want.kind:
        return False
    if have.kind != "call":
        return have.text == want.text
    if have.name == want.name and have.input == want.input:
        return True
    main = main_argument(want.input)
    # A tool of another name does the same work, so it does it on the same thing.
    return main == main_argument(have.input) and (main is not None or have.name != want.name)


def main_argument(arguments: JSON) -> str | None:
    """The command of a call, its path, or all of a free-form one; None where it has nothing of the kind."""
    if isinstance(arguments, str):
        return arguments
    if not isinstance(arguments, dict):
        return None
    return next((arguments[name] for name in MAIN_ARGUMENTS if name in arguments), None)


def _kinds(entries: Iterable[Entry]) -> str:
    return " ".join(entry.kind for entry in entries)
