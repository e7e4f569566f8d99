"""Restores files below a folder as they were at a message: first a plan, then all files or none."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Literal, NamedTuple

from clew.agents.file_evidence import FileContent, KnownContent
from clew.agents.protected_paths import is_protected
from clew.errors import PathRefused
from clew.file_history.timeline import Answer
from clew.io.filesystem import SYSTEM, make_folder
from clew.io.safe_write import Change, Within, parts_of, refuse_twins
from clew.store.change_journal import journaled_restore

Verdict = Literal["write", "remove", "same", "conflict", "unknown", "unproved", "protected", "refused"]
"""What restoring a file would do. A conflict is a file that is there and differs."""


class RestoreStep(NamedTuple):
    """One file of a plan."""

    answer: Answer
    path: str
    """Below the folder, or as recorded where it cannot be."""
    verdict: Verdict
    state: KnownContent | None = None
    reason: str | None = None


def relative(path: str, base: str) -> str | None:
    """Return a recorded path relative to a folder; None if it is elsewhere."""
    base = base.rstrip("/")
    return path[len(base) + 1 :] if base and path.startswith(base + "/") else None


def plan(
    answers: Sequence[tuple[Answer, KnownContent | None]],
    folder: Path,
    base: str,
    *,
    allow_protected: bool,
    allow_unproved: bool = False,
) -> list[RestoreStep]:
    """Plan to restore files below the folder, which need not exist yet; changes nothing."""
    with Within(folder) if folder.is_dir() else nullcontext() as within:
        # With --in-place the session says which folder it is, so the folder itself may be a protected one.
        guarded = None if allow_protected else str(folder.resolve())
        steps = [_step(within, answer, state, base, guarded, allow_unproved) for answer, state in answers]
    try:
        refuse_twins([step.path for step in steps if step.verdict in ("write", "conflict", "same", "remove")])
    except PathRefused as error:
        return [step._replace(verdict="refused", state=None, reason=str(error)) for step in steps]
    return steps


def _step(
    within: Within | None,
    answer: Answer,
    state: KnownContent | None,
    base: str,
    guarded: str | None,
    allow_unproved: bool,
) -> RestoreStep:
    """Return the step for one file; `guarded` is the target folder if protected files must not be changed."""
    path = relative(answer.path, base)
    if path is None:
        where = f"outside of {base}" if base else "the session does not say which folder it worked in"
        return RestoreStep(answer, answer.path, "refused", reason=where)
    try:
        parts_of(path)
        there = within.read(path) if within is not None else None
    except PathRefused as error:
        return RestoreStep(answer, path, "refused", reason=str(error))
    if answer.certainty == "unknown" or state is None:
        return RestoreStep(answer, path, "unknown", reason=answer.reason)
    verdict = _verdict(there, state)
    if verdict != "same" and guarded is not None and is_protected(f"{guarded}/{path}"):
        return RestoreStep(answer, path, "protected", state, "programs run this file automatically")
    if answer.certainty == "unproved" and verdict != "same":
        return RestoreStep(answer, path, verdict if allow_unproved else "unproved", state, answer.reason)
    return RestoreStep(answer, path, verdict, state)


def _verdict(there: bytes | None, state: KnownContent) -> Verdict:
    if isinstance(state, FileContent):
        return "write" if there is None else "same" if there == state.body else "conflict"
    return "same" if there is None else "remove"


def apply_plan(steps: Sequence[RestoreStep], folder: Path, rescue: Path, data_folder: Path) -> list[str]:
    """Apply all steps or none. Files that are replaced or removed are first copied below `rescue`.

    Returns the paths that were copied. The journal lies in clew's own `data_folder`; the caller holds `restore_lock`.
    """
    changes = [
        Change(step.path, step.state.body if isinstance(step.state, FileContent) else None, step.answer.mode)
        for step in steps
        if step.verdict != "same" and step.state is not None
    ]
    with Within(folder) as within:
        kept = [(change.path, body) for change in changes if (body := within.read(change.path)) is not None]
    # One `Within` at a time: each keeps folders open, and a process may open few files.
    if kept:
        make_folder(SYSTEM, rescue)
        with Within(rescue, folder_mode=0o700) as copies:
            copies.apply([Change(path, body, 0o600) for path, body in kept])
    with journaled_restore(data_folder, rescue, folder, changes), Within(folder) as within:
        within.apply(changes)
    return [path for path, _ in kept]
