"""The timeline of one file in a session: what is proved about it at any message. Keeps fingerprints, no content.

Between two pieces of evidence a file is known as long as nothing ran that could have changed it: from the earlier one
on until the first such thing, and back from the later one until the last. Where nothing ran and both disagree,
something that left no record changed it, and nothing is proved in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from clew.agents.file_evidence import Action, How, WrittenDuringRun
from clew.file_history.fingerprint import RANK, Certainty, Fingerprint, agree
from clew.file_history.message_ancestry import MessageAncestry

OBSERVATIONS = ("read", "snapshot")
"""Actions that change nothing."""
STILL_RUNNING = 1 << 62
"""The last message of a tool run without a recorded end."""


class Evidence(NamedTuple):
    """One piece of evidence on one file."""

    number: int
    """Its place among all evidence of the session, by which its content is found again."""
    path: str
    action: Action
    how: How
    call: int
    done: int
    before: Fingerprint | None
    after: Fingerprint | None
    note: str | None = None
    is_other: bool = False
    """What it found is not known, but is not what was known before."""
    modes: tuple[int, int] | None = None
    leaves_other: bool = False
    """It left no file; a file found later was created in between."""


class Span(NamedTuple):
    """Something that could change any file; it ran after message `call` and was over at `done`."""

    call: int
    done: int
    what: str
    observed_paths: frozenset[str] = frozenset()
    """Files that were watched meanwhile."""
    is_cut_off: bool = False
    only: frozenset[str] | None = None
    """The files that it could change, where not any."""

    def concerns(self, path: str) -> bool:
        """True if it could change a file, and there is no evidence of what it did."""
        return path not in self.observed_paths and (self.only is None or path in self.only)


class Answer(NamedTuple):
    """A file at a message: what it was, how that is known, and by which message."""

    path: str
    certainty: Certainty
    fingerprint: Fingerprint | None
    how: How | None = None
    evidence: Evidence | None = None
    is_after: bool = True
    """Whether it is what the evidence left, or what it found."""
    reason: str | None = None
    """Why it is not known, or not for sure."""

    @property
    def is_absent(self) -> bool:
        return self.fingerprint is not None and self.fingerprint.is_absent

    @property
    def mode(self) -> int | None:
        """The mode that the evidence records for the file; None if it records none."""
        if self.evidence is None or self.evidence.modes is None:
            return None
        return self.evidence.modes[self.is_after]

    @property
    def seen(self) -> int | None:
        """The message that it is known by."""
        if self.evidence is None:
            return None
        return self.evidence.done if self.is_after else self.evidence.call


class Timeline:
    """The evidence on one file, in order, and the tools that ran meanwhile."""

    def __init__(
        self,
        path: str,
        spans: Sequence[Span],
        ancestry: MessageAncestry,
        written_during_runs: Mapping[int, Sequence[WrittenDuringRun]] | None = None,
    ) -> None:
        self.path = path
        self.all_evidence: list[Evidence] = []
        self.notes: list[Evidence] = []
        """Looks that show nothing, such as copies that are gone; they say why something is not known."""
        self._spans = spans
        self._ancestry = ancestry
        self._written_during_runs = written_during_runs if written_during_runs is not None else {}

    def at(self, message: int) -> Answer:
        """The file as it was when the message was written."""
        answer = self._at(message)
        at_work = next((one.call for one in self._written_during_runs.get(message, ()) if self.path in one.files), None)
        if at_work is not None and answer.fingerprint is not None:
            return answer._replace(certainty="unproved", reason=f"a tool of message {at_work} was running")
        around = (
            evidence
            for evidence in self.all_evidence
            if evidence.call < message < evidence.done and evidence.after is not None
        )
        for evidence in around:
            # It was read close to the message, but it is unknown whether before or after.
            if (
                answer.fingerprint
                and evidence.after
                and not agree(evidence.after, answer.fingerprint)
                and is_on_path(self._ancestry, evidence, message)
            ):
                return _between(answer, evidence)
        return answer

    def _at(self, message: int) -> Answer:
        changing = next((evidence for evidence in self.all_evidence if self._is_changing(evidence, message)), None)
        if changing is not None:
            return self._unknown(f"message {changing.call} was changing it")
        first, cause = self._forward(message)
        last, meanwhile = self._backward(message)
        if first is not None and first.fingerprint is not None and last is not None and cause is None:
            return self._both(first, last)
        if cause is None and first is not None and last is None:
            other = self._other(first, message)
            return first if other is None else _between(first, other)
        if last is not None:
            is_other = first is not None and first.evidence is not None and first.evidence.leaves_other
            return last if not is_other else last._replace(certainty="unproved", reason="it was not a file before")
        return self._unproved(first, cause or meanwhile)

    def unexplained_changes(self) -> Iterator[Evidence]:
        """What something did that left no record, a person or another program, between two pieces of evidence."""
        for one, other in pairwise(self.all_evidence):
            if is_continued(one, other) or not _is_sure(one.after) or not _is_sure(other.before):
                continue
            if is_on_path(self._ancestry, one, other.call) and self._cause(other.call, one.call, other.done) is None:
                about = (self.path, "outside", other.how, one.call, other.done)
                yield Evidence(other.number, *about, one.after, other.before)  # type: ignore[arg-type]

    def _forward(self, message: int) -> tuple[Answer | None, str | None]:
        """What the file was after the last evidence, and what could have changed it since."""
        best: Answer | None = None
        for evidence in reversed([evidence for evidence in self._on_path(message) if evidence.done <= message]):
            cause = self._cause(message, evidence.call, message)
            found = self._known(evidence, True)
            if best is None:
                best = found
                if cause is not None:
                    return best, cause
            elif cause is None and _is_better(found, best):
                best = found
            if evidence.action not in OBSERVATIONS or cause is not None:
                break
        return best, None

    def _backward(self, message: int) -> tuple[Answer | None, str | None]:
        """What the file was before the next evidence, if nothing could have changed it until then; else what could."""
        best: Answer | None = None
        for evidence in self.all_evidence:
            if not self._is_later(evidence, message):
                continue
            cause = self._cause(message, message, evidence.done)
            if cause is not None:
                return best, cause
            found = self._known(evidence, False)
            if found.fingerprint is not None and (best is None or _is_better(found, best)):
                best = found
            if evidence.action not in OBSERVATIONS or evidence.leaves_other:
                break
        return best, None

    def _both(self, first: Answer, last: Answer) -> Answer:
        assert (
            first.fingerprint is not None
            and last.fingerprint is not None
            and first.evidence is not None
            and last.evidence is not None
        )
        if agree(first.fingerprint, last.fingerprint):
            return first if RANK[first.certainty] >= RANK[last.certainty] else last
        return _between(first, last.evidence)

    def _other(self, first: Answer, message: int) -> Evidence | None:
        """The next evidence, if it shows that the file had become something else before anything ran."""
        following = next((evidence for evidence in self.all_evidence if self._is_later(evidence, message)), None)
        if following is None or first.fingerprint is None or self._cause(message, message, following.call) is not None:
            return None
        is_unlike = following.before is not None and not agree(first.fingerprint, following.before)
        return following if following.is_other or is_unlike else None

    def _known(self, evidence: Evidence, is_after: bool) -> Answer:
        found = evidence.after if is_after else evidence.before
        if found is None:
            return Answer(
                self.path,
                "unknown",
                None,
                evidence=evidence,
                reason=evidence.note or f"message {evidence.call} changed it",
            )
        reason = evidence.note if found.certainty == "unproved" else None
        return Answer(self.path, found.certainty, found, evidence.how, evidence, is_after, reason)

    def _unproved(self, last: Answer | None, cause: str | None) -> Answer:
        """Nothing proves it; what was known last may be of use."""
        if last is None or last.fingerprint is None:
            reason = last.reason if last is not None else None
            return self._unknown(reason or self._noted() or cause or "no record mentions it")
        return last._replace(certainty="unproved", reason=cause)

    def _noted(self) -> str | None:
        return next((note.note for note in reversed(self.notes) if note.note), None)

    def _unknown(self, reason: str) -> Answer:
        return Answer(self.path, "unknown", None, reason=reason)

    def _on_path(self, message: int) -> Iterator[Evidence]:
        return (evidence for evidence in self.all_evidence if is_on_path(self._ancestry, evidence, message))

    def _is_later(self, evidence: Evidence, message: int) -> bool:
        if evidence.call == evidence.done == message:
            return True
        return (
            evidence.call >= message
            and evidence.done > message
            and self._ancestry.files_carry_over(message, evidence.call)
        )

    def _cause(self, message: int, begin: int, end: int) -> str | None:
        """What could have changed the file between two messages."""
        for span in self._spans:
            if self._is_within(span, begin, end):
                return f"{span.what} ran after message {span.call}"
        for evidence in self.all_evidence:
            if (
                evidence.done > begin
                and evidence.call < end
                and evidence.action not in OBSERVATIONS
                and self._is_elsewhere(evidence, message)
            ):
                return f"message {evidence.call}, on another branch, changed it"
        return self.went_back(begin, end)

    def went_back(self, begin: int, end: int) -> str | None:
        """Where between two messages the conversation went back behind a change; files may have gone back with it."""
        for start, parent in self._ancestry.jumps:
            if begin < start <= end and not self._ancestry.is_noted(start) and self._could_differ(parent, start):
                return f"the conversation went back to message {parent}"
        return None

    def _could_differ(self, begin: int, end: int) -> bool:
        if any(
            evidence.done > begin and evidence.call < end and evidence.action not in OBSERVATIONS
            for evidence in self.all_evidence
        ):
            return True
        return any(self._is_within(span, begin, end) for span in self._spans)

    def _is_within(self, span: Span, begin: int, end: int) -> bool:
        return span.done > begin and span.call < end and span.concerns(self.path)

    def _is_elsewhere(self, evidence: Evidence, message: int) -> bool:
        if is_on_path(self._ancestry, evidence, message):
            return False
        return evidence.call < message or not self._ancestry.files_carry_over(message, evidence.call)

    def _is_changing(self, evidence: Evidence, message: int) -> bool:
        if not evidence.call < message < evidence.done or evidence.action in OBSERVATIONS:
            return False
        return self._ancestry.files_carry_over(evidence.call, message)


def is_on_path(ancestry: MessageAncestry, evidence: Evidence, message: int) -> bool:
    """True where what was done stands on the way to a message: the call, and its result."""
    return ancestry.files_carry_over(evidence.call, message) and ancestry.files_carry_over(evidence.done, message)


def is_continued(one: Evidence, following: Evidence) -> bool:
    """False where a file is known to have been changed between two doings of messages, by something else."""
    return one.after is None or following.before is None or agree(one.after, following.before)


def _between(first: Answer, last: Evidence) -> Answer:
    """A file that something changed; maybe at once, as a program does that tidies what is written."""
    assert first.evidence is not None
    reason = f"something changed it between messages {first.evidence.call} and {last.done}"
    return first._replace(certainty="unproved", reason=reason)


def _is_sure(found: Fingerprint | None) -> bool:
    return found is not None and found.certainty in ("exact", "text")


def _is_better(one: Answer, other: Answer) -> bool:
    """True where both are the same, and the first is known more exactly."""
    if one.fingerprint is None or other.fingerprint is None:
        return False
    return agree(one.fingerprint, other.fingerprint) and RANK[one.certainty] > RANK[other.certainty]
