"""Compares the history that a client loaded with that of the session: texts exactly, calls by their main argument."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.realclients.history import JSON, Entry

MAIN_ARGUMENTS = (
    *("command", "cmd", "commands", "file_path", "filepath", "filePath", "path", "files"),
    *("pattern", "query", "url", "input"),
)
"""The names that tools give to the argument that says most about a call."""


def without_thinking(entries: Iterable[Entry], *, images: bool = True) -> list[Entry]:
    """The entries that must survive a conversion. Only the model that signed a thought reads it again."""
    left_out = ("thinking",) if images else ("thinking", "image")
    return pair_results(entry for entry in entries if entry.kind not in left_out)


def with_thoughts_as_answers(entries: Iterable[Entry]) -> list[Entry]:
    """The entries with each thought before the answer that it led to, as one text."""
    found: list[Entry] = []
    thought = ""
    for entry in entries:
        if entry.kind == "thinking":
            thought += entry.text
            continue
        if thought and entry.kind != "answer":
            found.append(Entry("answer", thought))
        found.append(entry._replace(text=thought + entry.text) if entry.kind == "answer" else entry)
        thought = ""
    return found


def pair_results(entries: Iterable[Entry]) -> list[Entry]:
    """Put each result right after its call: parallel calls and calls in turn count as equal."""
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
    """A message for each difference; none if everything was loaded in order."""
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
    # Converted calls may name another tool that does the same work with the same main argument.
    return main == main_argument(have.input) and (main is not None or have.name != want.name)


def main_argument(arguments: JSON) -> str | None:
    """The command of a call, its path, or all of a free-form one; None where it has nothing of the kind."""
    if isinstance(arguments, str):
        return arguments
    if not isinstance(arguments, dict):
        return None
    found = next((arguments[name] for name in MAIN_ARGUMENTS if name in arguments), None)
    if isinstance(found, list) and len(found) == 1:
        # A tool that takes several commands or files, called with one.
        return main_argument(found[0])
    return found


def _kinds(entries: Iterable[Entry]) -> str:
    return " ".join(entry.kind for entry in entries)
