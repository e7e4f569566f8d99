"""Whatever fails while a session is written: the home is as it was, and the same command succeeds afterwards."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from clew.convert.file_transaction import FileTransaction
from clew.convert.prepare import Prepared, prepare
from clew.errors import Busy, WouldLose
from clew.host import Host
from clew.library import Library
from tests.cli.running import clew
from tests.convert.said import only
from tests.convert.transcripts import spoke
from tests.receivers import RECEIVERS

WITH_AGENTS = "38ed9768-3187-478b-a81f-4c75a5724c22"
OTHER = "71960fc3-4cec-4060-adfc-a6068f5d859b"
PROJECT = ".claude/projects/-home-ada-src-tidepool"
CALLS = ["open", "write", "fsync", "replace", "close", "mkdir"]
FULL = "No space left on device"


def way(demo: Path, target: str, session: str = WITH_AGENTS) -> Prepared:
    library = Library(Host.at(demo))
    found = library.get(session)
    return prepare(found.agent, found.source, target, find=library.subagents(found))


def furnish(home: Path) -> None:
    """What other sessions left in a home."""
    for name, text in {
        ".gemini/projects.json": '{"projects": {"/home/ada/other": "other"}}',
        ".codex/session_index.jsonl": '{"id":"x","thread_name":"other"}',
    }.items():
        path = home / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.chmod(0o644)


def state(home: Path) -> dict[str, tuple[int, bytes]]:
    """Every file and folder, with its mode and its bytes."""
    found = {}
    for path in sorted(home.rglob("*")) if home.exists() else ():
        content = b"" if path.is_dir() else path.read_bytes()
        found[path.relative_to(home).as_posix()] = (path.lstat().st_mode, content)
    return found


class Failing:
    """A call of the system that fails the n-th time, or from then on."""

    def __init__(self, name: str, home: Path, at: int, for_good: bool) -> None:
        self._real: Callable[..., Any] = getattr(os, name)
        self._name, self._home, self._at, self._for_good = name, home, at, for_good
        self.calls = 0

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        if self._is_foreign(arguments[0]):
            return self._real(*arguments, **more)
        self.calls += 1
        if self.calls == self._at or (self._for_good and self.calls > self._at):
            if self._name == "close":
                self._real(*arguments)
            raise OSError(errno.ENOSPC, FULL)
        return self._real(*arguments, **more)

    def _is_foreign(self, place: Any) -> bool:
        """True for what concerns no file below the home."""
        if isinstance(place, int):
            place = Path(f"/proc/self/fd/{place}").readlink()
        return not Path(place).is_relative_to(self._home)


def failures(write: Callable[[], object], home: Path, name: str, for_good: bool) -> Iterator[str]:
    """Let each call of that name fail in turn; gives what was said, until all succeed."""
    before = state(home)
    for at in range(1, 1000):
        failing = Failing(name, home, at, for_good)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, name, failing)
            try:
                write()
            except OSError as error:
                yield str(error)
            else:
                assert failing.calls < at
                return
        assert state(home) == before, at


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="which file a descriptor means is not told here")
@pytest.mark.parametrize(("name", "for_good"), [*((name, False) for name in CALLS), ("write", True), ("fsync", True)])
class TestFailures:
    @pytest.mark.slow
    @pytest.mark.parametrize("target", RECEIVERS)
    def test_a_conversion_leaves_all_or_nothing(
        self, demo: Path, tmp_path: Path, target: str, name: str, for_good: bool
    ) -> None:
        home = tmp_path / "home"
        furnish(home)
        prepared = way(demo, target)
        said = list(failures(lambda: prepared.write(home, allow_loss=True), home, name, for_good))
        assert said and all(str(home) in each and FULL in each for each in said)
        assert all(Path(file).is_file() for file in prepared.describe(home).files)
        assert not list(home.rglob("*.tmp"))

    @pytest.mark.parametrize("place", ["codex", "gemini"])
    def test_the_way_back_leaves_all_or_nothing(
        self, demo: Path, tmp_path: Path, place: str, name: str, for_good: bool
    ) -> None:
        converted = way(demo, place).write(tmp_path / "there")
        home = tmp_path / "home"
        home.mkdir()
        prepared = way(tmp_path / "there", "claude-code", converted.session_id)
        said = list(failures(lambda: prepared.write(home), home, name, for_good))
        assert said and all(str(home) in each and FULL in each for each in said)
        files = prepared.describe(home).files
        assert len(files) >= 3
        assert all(Path(file).read_bytes() == (demo / Path(file).relative_to(home)).read_bytes() for file in files)


def test_the_command_names_the_file_and_can_be_repeated(demo: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".sage").mkdir(parents=True)
    (home / ".sage/sessions").write_text("no folder")
    with pytest.raises(OSError, match=r"\.sage/sessions"):
        way(demo, "sage-agent").write(home, allow_loss=True)
    (home / ".sage/sessions").unlink()
    way(demo, "sage-agent").write(home, allow_loss=True)


def test_folders_and_files_are_private(demo: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    for target in RECEIVERS:
        way(demo, target).write(home, allow_loss=True)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (home, *home.rglob("*"))}
    assert modes == {0o700, 0o600}


def test_no_file_stays_open_while_others_are_written(tmp_path: Path) -> None:
    """A session may have more large parts than a process may have open files."""
    piece = b"x" * (1 << 20)
    open_before = len(list(Path("/dev/fd").iterdir()))
    with FileTransaction() as transaction:
        files = [transaction.create(tmp_path / f"{number}") for number in range(3)]
        for file in files * 2:
            file.write(piece)
        files[0].write(b"end")
        assert len(list(Path("/dev/fd").iterdir())) == open_before
        transaction.commit()
    assert [file.path.read_bytes() for file in files] == [piece * 2 + b"end", piece * 2, piece * 2]


class TestLog:
    def test_many_add_to_it_at_the_same_time(self, tmp_path: Path) -> None:
        path = tmp_path / "list.jsonl"
        path.write_bytes(b"first")

        def add(number: int) -> None:
            with FileTransaction() as transaction:
                transaction.append(path, b"line %d\n" % number)
                transaction.commit()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(add, range(100)))
        lines = path.read_bytes().split(b"\n")
        assert lines[0] == b"first"
        assert sorted(lines[1:]) == sorted([b"", *(b"line %d" % number for number in range(100))])

    def test_what_others_added_stays_when_a_conversion_fails(self, tmp_path: Path) -> None:
        log, other = tmp_path / "list.jsonl", tmp_path / "other.jsonl"
        log.write_bytes(b"first\n")
        other.mkdir()
        with pytest.raises(OSError, match=r"other\.jsonl"), FileTransaction() as transaction:
            transaction.append(log, b"ours\n")
            transaction.append(other, b"ours\n")
            transaction.commit()
        assert log.read_bytes() == b"first\n"

    def test_a_conversion_adds_what_was_listed_meanwhile(self, demo: Path, tmp_path: Path) -> None:
        prepared = way(demo, "codex")
        index = tmp_path / ".codex/session_index.jsonl"
        index.parent.mkdir()
        index.write_text('{"id":"x","thread_name":"meanwhile"}')
        written = prepared.write(tmp_path, allow_loss=True)
        assert [json.loads(line)["id"] for line in index.read_text().splitlines()] == ["x", written.session_id]
        assert str(index) in written.files


class TestRegistry:
    def other(self, home: Path, text: str = '{"projects": {"/home/ada/other": "other"}}') -> Path:
        path = home / ".gemini/projects.json"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        return path

    def test_a_link_in_the_own_home_stays_a_link_and_the_mode_stays(
        self, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        path = self.other(tmp_path / "home")
        real = path.rename(tmp_path / "real.json")
        real.chmod(0o644)
        path.symlink_to(real)
        way(demo, "gemini").write(tmp_path / "home", allow_loss=True)
        assert path.is_symlink()
        assert len(json.loads(real.read_text())["projects"]) == 2
        assert stat.S_IMODE(real.stat().st_mode) == 0o644

    @pytest.mark.parametrize("text", ["[]", '"words"', '{"projects": []}', "7"])
    def test_what_is_no_registry_is_not_replaced(self, demo: Path, tmp_path: Path, text: str) -> None:
        path = self.other(tmp_path, text)
        before = state(tmp_path)
        with pytest.raises(WouldLose, match=r"projects\.json"):
            way(demo, "gemini").write(tmp_path, allow_loss=True)
        assert state(tmp_path) == before
        assert path.read_text() == text

    def test_many_are_registered_at_the_same_time(self, tmp_path: Path) -> None:
        def convert(number: int) -> None:
            path = tmp_path / f"aaaaaaaa-0000-4000-8000-00000000000{number}.jsonl"
            path.write_text(json.dumps(spoke("user", "go", uuid="u1", cwd=f"/home/ada/p{number}")) + "\n")
            found = only(path)
            prepare(found.agent, found.source, "gemini").write(tmp_path / "home")

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(convert, range(6)))
        projects = json.loads((tmp_path / "home/.gemini/projects.json").read_text())["projects"]
        assert projects == {f"/home/ada/p{number}": f"p{number}" for number in range(6)}
        assert not list(tmp_path.rglob("*.tmp"))

    def test_what_changed_meanwhile_is_not_undone(self, tmp_path: Path) -> None:
        path = tmp_path / "list.json"
        path.write_text("now")
        with pytest.raises(Busy, match=r"list\.json"), FileTransaction() as transaction:
            transaction.replace(path, b"before", b"ours")
            transaction.commit()
        assert [each.name for each in tmp_path.iterdir()] == ["list.json"]
        assert path.read_text() == "now"


class TestArchived:
    """sage-emacs moves a conversation away and leaves the metadata of the project."""

    @pytest.fixture
    def home(self, demo: Path, tmp_path: Path) -> Path:
        written = way(demo, "sage-emacs").write(tmp_path, allow_loss=True)
        conversation = Path(written.files[0])
        (conversation.parent / "history").mkdir()
        conversation.rename(conversation.parent / "history/20260110-120000.jsonl")
        conversation.with_name("conversation.jsonl.clew").unlink()
        return tmp_path

    def metadata(self, home: Path) -> Path:
        (path,) = home.rglob("metadata.json")
        return path

    def test_it_takes_the_next_one(self, demo: Path, home: Path) -> None:
        path = self.metadata(home)
        path.write_text(json.dumps({**json.loads(path.read_text()), "message_count": 999, "colour": "green"}))
        way(demo, "sage-emacs").write(home, allow_loss=True)
        known = json.loads(path.read_text())
        assert known["colour"] == "green"
        assert known["message_count"] != 999

    def test_resume_does_not_take_another_conversation_for_the_one(self, demo: Path, tmp_path: Path) -> None:
        home = tmp_path / "home"
        home.mkdir()
        way(demo, "sage-emacs").write(home, allow_loss=True)
        again, other = (
            clew(
                "--home",
                home,
                "resume",
                demo / PROJECT / f"{name}.jsonl",
                "--in",
                "sage-emacs",
                "--print",
                "--allow-loss",
            )
            for name in (WITH_AGENTS, OTHER)
        )
        assert (again.code, other.code) == (0, 6)
        assert "exists already" in other.err

    def test_metadata_that_cannot_be_read_are_not_replaced(self, demo: Path, home: Path) -> None:
        self.metadata(home).write_text("{torn")
        before = state(home)
        with pytest.raises(WouldLose, match=r"metadata\.json"):
            way(demo, "sage-emacs").write(home, allow_loss=True)
        assert state(home) == before


SLOW = """
import sys, time
from pathlib import Path
from clew.convert.file_transaction import FileTransaction
from clew.io.signals import exit_on_signal
from tests.receivers import RECEIVERS
with exit_on_signal(), FileTransaction() as transaction:
    transaction.create(Path(sys.argv[1]) / "new/file").write(b"x" * 5_000_000)
    print("begun", flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals are another thing there")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_being_ended_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-c", SLOW, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(number)
        assert process.wait(20) != 0
    assert list(tmp_path.iterdir()) == []
