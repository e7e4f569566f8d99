"""The steps of an undo or redo, one for each file, and what stops it before anything is changed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from clew.errors import PathRefused, WouldLose
from clew.io.protected import is_protected, leads_out
from clew.store.snapshots import NO_FILE, FileState
from clew.store.writer import Receipt

Verdict = Literal["write", "remove", "same", "conflict", "missing", "refused"]
"""What putting a file back comes to. A conflict is one that would lose what somebody changed."""


class Between(msgspec.Struct, frozen=True):
    """A version of a file that somebody made between two tool runs."""

    left: bytes | None
    """What the tool before had left, where that can be had."""
    made: bytes | None


class Step(msgspec.Struct, frozen=True):
    """One file of a plan."""

    path: str
    verdict: Verdict
    target: FileState
    expected: FileState | None = None
    """As the last record left it; None where none tells."""
    now: FileState = NO_FILE
    reason: str | None = None
    content: bytes | None = None
    there: bytes | None = None
    recorded: bytes | None = None
    """What a file in conflict held when the last record was made, where that can be had."""
    between: list[Between] = []
    """What somebody made of it between tool runs, and would be lost."""

    @property
    def is_changing(self) -> bool:
        return self.verdict in ("write", "remove", "conflict")

    @property
    def is_changed_since(self) -> bool:
        """True where it is not as the last record left it."""
        return not self.now.is_nothing and (self.expected is None or not self.expected.same_as(self.now))


class Undone(msgspec.Struct, frozen=True):
    """What an undo or redo did, or would do."""

    action: Literal["undo", "redo"]
    start: str | None
    """The message that the conversation stood at."""
    head: str | None
    """The one it stands at now."""
    steps: list[Step]
    receipt: Receipt | None = None
    """The record of it; None where nothing was done."""
    rescue: Path | None = None
    """Where copies of files lie that somebody had changed."""
    unknown: list[str] = []
    """What the logs do not tell any more, with its place: other files may not be as they were."""


class Refused(WouldLose):
    """Going on would lose what somebody changed, or cannot bring back everything. Holds the plan."""

    def __init__(self, words: str, steps: Sequence[Step]) -> None:
        super().__init__(words)
        self.steps = list(steps)


def refuse_blind(unknown: Sequence[str]) -> None:
    """Stop a redo, forced or not, where nothing tells what the undo replaced: the conversation would go on, and files
    would not."""
    if unknown:
        words = f"nothing was changed: what the undo replaced is not known for sure: {unknown[0]}"
        raise Refused(f"{words}; an undo to the message goes by what its tools recorded", ())


def refuse(steps: Sequence[Step], root: Path, force: bool, allow_protected: bool, unknown: Sequence[str] = ()) -> None:
    """Stop before anything is changed, if something must not be. The workspace itself may be a protected folder."""
    if unknown and not force:
        words = f"nothing was changed: which files go back is not known for sure: {unknown[0]}"
        raise Refused(f"{words}; --force goes on with what is known", steps)
    refused = [step for step in steps if step.verdict == "refused"]
    if refused:
        raise PathRefused(f"nothing was changed: {refused[0].path!r}: {refused[0].reason}")
    protected = [step for step in steps if step.is_changing and is_protected(f"{root}/{step.path}")]
    if protected and not allow_protected:
        words = "programs trust this file without asking; --allow-protected changes it"
        raise PathRefused(f"nothing was changed: {protected[0].path!r}: {words}")
    strangers = [step for step in steps if step.is_changing and leads_out(step.path, step.target.link, str(root))]
    if strangers and not allow_protected:
        words = "it was a link that leads out of the workspace; --allow-protected puts it back"
        raise PathRefused(f"nothing was changed: {strangers[0].path!r}: {words}")
    missing = [step for step in steps if step.verdict == "missing"]
    if missing and not force:
        words = f"nothing was changed: {missing[0].path!r} cannot be brought back: {missing[0].reason}"
        raise Refused(f"{words}; --force leaves it as it is", steps)
    conflicts = [step for step in steps if step.verdict == "conflict"]
    if conflicts and not force:
        words = f"nothing was changed: {conflicts[0].path!r} {conflicts[0].reason}"
        raise Refused(f"{words}; --force goes on, and keeps a copy", steps)
