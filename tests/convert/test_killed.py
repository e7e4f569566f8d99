"""Killed at any moment: a session is found only when all of it is there, and the next try is not in anybody's way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from clew.convert.file_transaction import FileTransaction
from clew.errors import WouldLose
from clew.host import Host
from clew.library import Library
from tests.cli.running import WITH_AGENTS
from tests.convert.test_file_transaction import way

KILLED = """
import os, signal, sys
from pathlib import Path
from clew.convert.prepare import prepare
from clew.host import Host
from clew.library import Library

library = Library(Host.at(Path(sys.argv[1])))
found = library.get(sys.argv[2])
prepared = prepare(found.agent, found.source, sys.argv[3], find=library.subagents(found))
real = os.replace

for at in range(1, 100):
    if os.fork() == 0:
        calls = 0
        def replace(*words):
            global calls
            calls += 1
            if calls == at:
                os.kill(os.getpid(), signal.SIGKILL)
            real(*words)
        os.replace = replace
        home = Path(sys.argv[4]) / str(at)
        prepared.write(home, allow_loss=True)
        os._exit(0)
    if os.wait()[1] == 0:
        break
"""


def contents(home: Path) -> dict[str, bytes]:
    return {path.relative_to(home).as_posix(): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def found(home: Path) -> list[str]:
    """The sessions that are no sub-agents."""
    return [session.id for session in Library(Host.at(home)).sources() if not session.is_subagent]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no such signal")
@pytest.mark.parametrize("target", ["claude-code", "codex", "gemini", "sage-agent", "sage-emacs"])
def test_the_next_try_finds_nothing_in_its_way(demo: Path, tmp_path: Path, target: str) -> None:
    command = [sys.executable, "-c", KILLED, str(demo), WITH_AGENTS, target, str(tmp_path)]
    subprocess.run(command, check=True, timeout=120)
    homes = sorted(tmp_path.iterdir(), key=lambda home: int(home.name))
    whole = contents(homes.pop())
    assert len(homes) == len([name for name in whole if not name.endswith("session_index.jsonl")])
    prepared = way(demo, target)
    for home in homes:
        assert found(home) == []
        prepared.write(home, allow_loss=True)
        assert contents(home) == whole
        assert len(found(home)) == 1


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no such signal")
@pytest.mark.parametrize("place", ["codex", "gemini"])
def test_neither_on_the_way_back(demo: Path, tmp_path: Path, place: str) -> None:
    converted = way(demo, place).write(tmp_path / "there")
    killed = tmp_path / "killed"
    words = (str(tmp_path / "there"), converted.session_id, "claude-code", str(killed))
    subprocess.run([sys.executable, "-c", KILLED, *words], check=True, timeout=120)
    homes = sorted(killed.iterdir(), key=lambda home: int(home.name))
    whole = contents(homes.pop())
    prepared = way(tmp_path / "there", "claude-code", converted.session_id)
    for home in homes:
        assert found(home) == []
        prepared.write(home)
        assert contents(home) == whole


class TestTransaction:
    def put(self, folder: Path, **named: bytes) -> None:
        with FileTransaction() as transaction:
            for name, content in named.items():
                transaction.create(folder / name, last=name == "main").write(content)
            transaction.commit()

    def test_the_same_may_be_there(self, tmp_path: Path) -> None:
        (tmp_path / "side").write_bytes(b"same")
        self.put(tmp_path, side=b"same", main=b"words")
        assert contents(tmp_path) == {"side": b"same", "main": b"words"}

    @pytest.mark.parametrize("name", ["side", "main"])
    def test_nothing_else_may(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_bytes(b"other")
        with pytest.raises(WouldLose, match=name):
            self.put(tmp_path, side=b"same", main=b"words")
        assert contents(tmp_path) == {name: b"other"}

    def test_not_even_the_same_main_file(self, tmp_path: Path) -> None:
        (tmp_path / "main").write_bytes(b"words")
        with pytest.raises(WouldLose, match="main"):
            self.put(tmp_path, main=b"words")

    def test_a_link_to_the_same_is_not_the_same(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").write_bytes(b"same")
        (tmp_path / "side").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(WouldLose, match="side"):
            self.put(tmp_path, side=b"same", main=b"words")

    def test_the_session_is_newer_than_what_belongs_to_it(self, tmp_path: Path) -> None:
        self.put(tmp_path, main=b"words", side=b"same")
        assert (tmp_path / "main").stat().st_mtime - (tmp_path / "side").stat().st_mtime >= 2

    @pytest.mark.skipif(os.name == "nt", reason="whether a process runs is not asked there")
    def test_what_a_dead_process_left_is_swept_and_nothing_else(self, tmp_path: Path) -> None:
        with subprocess.Popen([sys.executable, "-c", ""]) as process:
            process.wait()
        alive, dead = os.getpid(), process.pid
        names = [f".x.{alive}-0123456789ab.tmp", ".x.tmp", "x.1-0123456789ab.tmp", f".x.{dead}-0123.tmp"]
        for name in (*names, f".x.{dead}-0123456789ab.tmp"):
            (tmp_path / name).touch()
        self.put(tmp_path, main=b"words")
        assert contents(tmp_path).keys() == {*names, "main"}

    def test_a_line_that_was_added_is_not_added_again(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        for _ in range(2):
            with FileTransaction() as transaction:
                transaction.append(log, b"ours\n")
                transaction.commit()
        assert log.read_bytes() == b"ours\n"
        with FileTransaction() as transaction:
            transaction.append(log, b"rs\n")
            transaction.commit()
        assert log.read_bytes() == b"ours\nrs\n"
