"""File history of sessions that the real clients wrote, against copies of the project made while they ran.

Each time a client sends a request to its model, the project is copied. Every answer of clew that claims to be exact
must equal the copy of that time byte for byte, at every message; the share of exact answers is printed.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from clew.agents.file_evidence import FileContent
from clew.file_history.history import FileHistory
from clew.library import Library, StoredSession
from clew.sources.wsl import host_at
from tests.realclients.client import FileChanges
from tests.realclients.clients import FILE_CHANGES
from tests.realclients.conversion import is_readable
from tests.realclients.lab import run
from tests.realclients.project import FILES_TO_CHANGE
from tests.realclients.script import Say, Script, Turn, turn

TRIED = [changes for changes in FILE_CHANGES.values() if is_readable(changes.client)]


def record_changes(changes: FileChanges, folder: Path) -> Path:
    """Let the client make all changes; returns the project."""
    project, home, snapshots = folder / "harbour", folder / "home", folder / "snapshots"
    project.mkdir(parents=True)
    for name, body in FILES_TO_CHANGE.items():
        (project / name).write_bytes(body)
    session: str | None = None
    step = 0
    for number, calls in enumerate(changes.runs(project)):
        turns: list[Turn] = []
        for call in calls:
            turns.append(turn(Say(f"Step {step}."), call))
            step += 1
        turns.append(turn(Say(f"Step {step}.")))
        step += 1
        finished = run(
            changes.client,
            home,
            project,
            f"Part {number}, please.",
            Script(tuple(turns)),
            session=session,
            environment=changes.environment,
            snapshots=snapshots,
        )
        finished.check()
        (session,) = changes.client.session_ids(home)
    shutil.copytree(project, snapshots / str(step))
    return project


class Share(NamedTuple):
    """The number of answers of each certainty, over all messages and files."""

    counts: Counter[str]

    @property
    def exact(self) -> float:
        return self.counts["exact"] / sum(self.counts.values())

    def __str__(self) -> str:
        return ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items()))


def snapshot_numbers(session: StoredSession) -> Iterator[tuple[int, int]]:
    """The index of each message, with the number of the project copy from that time.

    A call has changed nothing yet when it is recorded, and everything when its result is.
    """
    step, done = 0, 0
    for message in session.messages:
        for block in message.content:
            text = getattr(block, "text", "")
            if message.role == "assistant" and text.startswith("Step "):
                step, done = int(text[5:-1]), 0
            if type(block).__name__ == "ToolResult":
                done = 1
        yield message.index, step + done


def check(session: StoredSession, project: Path) -> Share:
    """Compare every answer about a file of the project with the copies."""
    history = FileHistory(session.agent, session.source)
    answers = []
    for index, number in snapshot_numbers(session):
        for path, timeline in history.timelines.items():
            if path.startswith(f"{project}/"):
                truth = project.with_name("snapshots") / str(number) / path[len(str(project)) + 1 :]
                answers.append((index, timeline.at(index), truth))
    contents = history.contents([answer for _, answer, _ in answers])
    for (index, answer, truth), state in zip(answers, contents, strict=True):
        if answer.certainty in ("exact", "text"):
            found = truth.read_bytes() if truth.exists() else None
            answered = state.body if isinstance(state, FileContent) else None
            if answer.certainty == "text" and found is not None and answered is not None:
                found, answered = _characters(found), _characters(answered)
            assert answered == found, f"message {index}, {truth}: {answer}"
    return Share(Counter(answer.certainty for _, answer, _ in answers))


def _characters(body: bytes) -> bytes:
    return body.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")


@pytest.mark.parametrize("changes", TRIED, ids=lambda changes: changes.name)
def test_exact_answers_equal_the_files(
    changes: FileChanges, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = record_changes(changes, tmp_path)
    sessions = list(Library(host_at(tmp_path / "home")).sources())
    (session,) = [one for one in sessions if one.agent.id == changes.client.agent]
    share = check(session, project)
    with capsys.disabled():
        print(f"\n{changes.name}: {share.exact:.0%} exact of {sum(share.counts.values())} answers ({share})")
    assert share.exact >= changes.minimum_exact_share
