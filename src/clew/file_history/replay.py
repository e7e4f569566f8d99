"""Builds the timelines of all files in one pass. Only the newest content of each file is kept in memory."""

from __future__ import annotations

import hashlib
from bisect import bisect_right, insort_right
from collections.abc import Collection, Iterable
from typing import NamedTuple

from clew.agents.file_evidence import (
    Edit,
    Event,
    FileChange,
    FileContent,
    KnownContent,
    NoExternalRestore,
    WriterFinished,
    WriterStarted,
    WrittenDuringRun,
)
from clew.file_history.fingerprint import RANK, Fingerprint, agree, fingerprint_of, weakened
from clew.file_history.message_ancestry import MessageAncestry
from clew.file_history.timeline import OBSERVATIONS, STILL_RUNNING, Evidence, Span, Timeline, is_on_path

Wanted = tuple[int, bool]
"""The number of a piece of evidence, and whether the content after it is wanted or the one before."""


class Found(NamedTuple):
    """Content in memory, and its fingerprint."""

    state: KnownContent
    fingerprint: Fingerprint


class Replay:
    """All timelines of a session."""

    def __init__(
        self, ancestry: MessageAncestry, wanted: Iterable[Wanted] = (), *, keep_contents_of: Collection[str] = ()
    ) -> None:
        self.timelines: dict[str, Timeline] = {}
        self.spans: list[Span] = []
        self.contents: dict[Wanted, KnownContent] = {}
        """The contents that were wanted, and all of the files in `keep_contents_of`."""
        self._ancestry = ancestry
        self._wanted = set(wanted)
        self._kept_paths = keep_contents_of
        self._open: dict[str, int] = {}
        """By key: the number of a span that is not over."""
        self._over: list[tuple[int, int]] = []
        """End and number of those that are, by end."""
        self._written_during_runs: dict[int, list[WrittenDuringRun]] = {}
        self._held: dict[str, tuple[Evidence, KnownContent]] = {}
        self._number = 0

    @property
    def is_satisfied(self) -> bool:
        """True once every content that was wanted is found."""
        return bool(self._wanted) and len(self.contents) == len(self._wanted)

    def run(self, events: Iterable[Event]) -> Replay:
        """Go through all evidence, or until all that was wanted is found."""
        for event in events:
            self.add(event)
            if self.is_satisfied:
                break
        return self

    def add(self, event: Event) -> None:
        """Take up one piece of evidence."""
        if isinstance(event, WriterStarted):
            self._open[event.key] = len(self.spans)
            run = (event.what, event.observed_paths, event.is_cut_off, event.only)
            self.spans.append(Span(event.call, STILL_RUNNING, *run))
        elif isinstance(event, WriterFinished):
            at = self._open.pop(event.key, None)
            if at is not None:
                self.spans[at] = self.spans[at]._replace(done=event.done)
                insort_right(self._over, (event.done, at))
        elif isinstance(event, NoExternalRestore):
            self._ancestry.note_files_unchanged_before(event.message)
        elif isinstance(event, WrittenDuringRun):
            self._written_during_runs.setdefault(event.message, []).append(event)
        else:
            self._add_change(event)

    def _add_change(self, change: FileChange) -> None:
        before = self._before(change)
        after, reason = self._after(change, before)
        evidence = Evidence(
            number=self._number,
            path=change.path,
            action=change.action,
            how=change.how,
            call=change.call,
            done=change.done,
            before=before.fingerprint if before is not None else None,
            after=after.fingerprint if after is not None else None,
            note=change.note or reason,
            is_other=self._is_other(change),
            modes=change.modes,
            leaves_other=change.leaves_other,
        )
        self._number += 1
        if after is None and evidence.action in OBSERVATIONS and not evidence.leaves_other:
            self._timeline(evidence.path).notes.append(evidence)
            return
        self._keep(evidence, before, after)
        self._place(evidence, after)

    def _before(self, change: FileChange) -> Found | None:
        """What the tool found: what the record says, spelled exactly where what is held is the same."""
        held = self._known(change.path, change.call)
        if change.before is None:
            return held if held is not None and _fits(held.state, change.found) else None
        said = Found(change.before, fingerprint_of(change.before))
        return held if held is not None and _is_better(held, said) else said

    def _is_other(self, change: FileChange) -> bool:
        """True where the tool found something else than was held, and no more is known of that."""
        held = self._held.get(change.path)
        return (
            change.before is None and change.found is not None and held is not None and not _fits(held[1], change.found)
        )

    def _known(self, path: str, call: int) -> Found | None:
        """What is held of a file, and how certain it is when message `call` is written."""
        if path not in self._held:
            return None
        evidence, state = self._held[path]
        if evidence.after is None:
            return None
        if self._is_undisturbed(evidence, call):
            return Found(state, evidence.after)
        return Found(weakened(state, "unproved"), evidence.after._replace(certainty="unproved"))

    def _is_undisturbed(self, evidence: Evidence, call: int) -> bool:
        if not is_on_path(self._ancestry, evidence, call):
            return False
        if any(self._disturbs(at, evidence, call) for at in self._open.values()):
            return False
        if self._ancestry.jumps and self._timeline(evidence.path).went_back(evidence.call, call):
            return False
        since = bisect_right(self._over, evidence.call, key=lambda span: span[0])
        return not any(self._disturbs(at, evidence, call) for _, at in self._over[since:])

    def _disturbs(self, at: int, evidence: Evidence, call: int) -> bool:
        return self.spans[at].call < call and self.spans[at].concerns(evidence.path)

    def _after(self, change: FileChange, before: Found | None) -> tuple[Found | None, str | None]:
        """What the tool left, and why that is not for sure."""
        if change.after is not None:
            shown = Found(change.after, fingerprint_of(change.after))
            same = _is_look(change) and before is not None and _is_better(before, shown)
            return before if same else shown, None
        if change.edit is not None:
            before, reason = self._edited(change, change.edit, before)
            if change.digest is None:
                return before, reason
        return _hashed(change.digest, before)

    def _edited(self, change: FileChange, edit: Edit, before: Found | None) -> tuple[Found | None, str | None]:
        base = self._known(change.source, change.call) if change.source is not None else before
        doubtful = base is not None and base.fingerprint.certainty == "unproved"
        if doubtful and edit(None) is not None:
            # It needs nothing of what was there.
            base, doubtful = None, False
        state = edit(base.state if base is not None else None)
        if state is None:
            return None, "the content before the change is not known"
        if doubtful:
            found = Found(weakened(state, "unproved"), fingerprint_of(state, "unproved"))
            return found, "the content before the change is only inferred"
        return Found(state, fingerprint_of(state)), None

    def _keep(self, evidence: Evidence, before: Found | None, after: Found | None) -> None:
        is_kept = evidence.path in self._kept_paths
        for is_after, found in ((False, before), (True, after)):
            if found is not None and (is_kept or (evidence.number, is_after) in self._wanted):
                self.contents[evidence.number, is_after] = found.state

    def _place(self, evidence: Evidence, after: Found | None) -> None:
        timeline = self._timeline(evidence.path)
        insort_right(timeline.all_evidence, evidence, key=lambda one: one.done)
        held = self._held.get(evidence.path)
        if timeline.all_evidence[-1] is evidence:
            self._held.pop(evidence.path, None)
            if after is not None:
                self._held[evidence.path] = (evidence, after.state)
        elif after is not None and held is not None and self._is_known_better(timeline, evidence, after, held):
            self._held[evidence.path] = (evidence, after.state)

    def _timeline(self, path: str) -> Timeline:
        if path not in self.timelines:
            self.timelines[path] = Timeline(path, self.spans, self._ancestry, self._written_during_runs)
        return self.timelines[path]

    def _is_known_better(
        self, timeline: Timeline, evidence: Evidence, after: Found, held: tuple[Evidence, KnownContent]
    ) -> bool:
        """True for a copy that was noted late, of a file that was only looked at since."""
        if held[0].after is None or not _is_better(after, Found(held[1], held[0].after)):
            return False
        return all(one.action in OBSERVATIONS for one in timeline.all_evidence if one.done > evidence.done)


def _is_look(change: FileChange) -> bool:
    return change.action in OBSERVATIONS


def _is_better(one: Found, other: Found) -> bool:
    """True where both are the same, and the first is known more exactly."""
    return (
        agree(one.fingerprint, other.fingerprint)
        and RANK[one.fingerprint.certainty] > RANK[other.fingerprint.certainty]
    )


def _fits(state: KnownContent, found: str | None) -> bool:
    """True where content can be what a record says of it."""
    if found is None:
        return True
    return isinstance(state, FileContent) and found in ("", hashlib.sha256(state.body).hexdigest())


def _hashed(digest: str | None, found: Found | None) -> tuple[Found | None, str | None]:
    """Content that the record knows by its digest: exactly right, or not known."""
    if digest is None:
        return None, "the record does not contain it"
    body = found.state.body if found is not None and isinstance(found.state, FileContent) else None
    if body is not None and hashlib.sha256(body).hexdigest() == digest:
        state = FileContent(body, True)
        return Found(state, fingerprint_of(state)), None
    return None, "only its checksum is recorded"
