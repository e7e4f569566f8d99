"""Many sessions exported by several processes: nothing may tell it from one."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from multiprocessing.context import ForkProcess
from pathlib import Path

import pytest

from clew.cli import command_export
from clew.cli.command_export import Writer
from clew.errors import SourceUnreadable
from clew.export import parallel
from clew.host import Host
from clew.io.compress import open_source
from clew.library import Library, StoredSession
from tests.cli.running import FORKED, Ran, clew
from tests.unit.samples import claude_line

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
HERE = os.getpid()
_TIME = re.compile(rb'"export_timestamp":"[^"]*"')
SPREAD = (
    "import os, clew.export.parallel as parallel; parallel.MIN_PARALLEL_BYTES = 0; os.cpu_count = lambda: 3; "
    "from clew.cli.main import main; "
)
"""The command with several processes, however small the home."""


@pytest.fixture
def home(demo: Path, tmp_path: Path) -> Path:
    """The demo, and two sessions that hold a secret."""
    home = tmp_path / "home"
    shutil.copytree(demo, home)
    folder = next((home / ".claude" / "projects").iterdir())
    key = "AKIA" + "QYLPMN5HHHFPZAM2"
    (folder / "secret.jsonl").write_text(json.dumps(claude_line("user", "u1", None, f"key {key}")) + "\n")
    (folder / "secret2.jsonl").write_text(json.dumps(claude_line("user", "u2", None, f"again {key}")) + "\n")
    return home


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Has a number for each process that is started: three, however small the home."""
    started: list[int] = []
    start = ForkProcess.start

    def counted(process: ForkProcess) -> None:
        started.append(len(started))
        start(process)

    monkeypatch.setattr(ForkProcess, "start", counted)
    monkeypatch.setattr(parallel, "MIN_PARALLEL_BYTES", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    return started


def make_unreadable(home: Path) -> None:
    """One session among the others."""
    (path,) = home.rglob(f"{FORKED}.jsonl")
    path.unlink()
    os.mkfifo(path)


def alone(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> Ran:
    """The command in one process."""
    with monkeypatch.context() as changed:
        changed.setattr(parallel, "MIN_PARALLEL_BYTES", 1 << 60)
        return clew(*words)


def files(folder: Path) -> dict[str, bytes]:
    """Every file, unpacked, without its time."""
    found = {}
    for path in sorted(folder.rglob("*")):
        with open_source(path) as stream:
            found[path.name] = _TIME.sub(b"", stream.read())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("bad", [False, True])
@pytest.mark.parametrize("redact", ["none", "secrets"])
def test_ndjson_is_that_of_one_process(
    home: Path, monkeypatch: pytest.MonkeyPatch, started: list[int], redact: str, bad: bool
) -> None:
    if bad:
        make_unreadable(home)
    words = ("--home", home, "export", "--to", "ndjson", "--redact", redact)
    one = alone(monkeypatch, *words)
    assert not started
    several = clew(*words)
    assert len(started) == 3
    assert (several.code, several.err) == (one.code, one.err)
    assert several.code == (3 if bad else 0)
    assert ("masked" in one.err) == (redact != "none")
    assert _TIME.sub(b"", several.raw) == _TIME.sub(b"", one.raw)
    assert len(several.lines) == 30 - bad


@pytest.mark.parametrize("suffix", [".ndjson", ".ndjson.gz", ".ndjson.zst"])
def test_one_file_is_that_of_one_process(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[int], suffix: str
) -> None:
    for name in ("one", "several"):
        (tmp_path / name).mkdir()
    assert alone(monkeypatch, "--home", home, "export", "-o", tmp_path / "one" / f"x{suffix}").code == 0
    assert clew("--home", home, "export", "-o", tmp_path / "several" / f"x{suffix}").code == 0
    assert len(started) == 3
    assert files(tmp_path / "several") == files(tmp_path / "one")


def test_losses_are_those_of_one_process(home: Path, monkeypatch: pytest.MonkeyPatch, started: list[int]) -> None:
    words = ("--home", home, "export", "--to", "otel")
    one = alone(monkeypatch, *words)
    several = clew(*words)
    assert len(started) == 3
    assert several.err == one.err and "a message on another branch" in one.err


@pytest.mark.slow
@pytest.mark.parametrize("bad", [False, True])
@pytest.mark.parametrize(
    "options",
    [("--to", "json"), ("--to", "json", "--zst"), ("--to", "markdown"), ("--redact", "all", "--to", "ndjson")],
)
def test_a_folder_is_that_of_one_process(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[int], options: tuple[str, ...], bad: bool
) -> None:
    if bad:
        make_unreadable(home)
    for name in ("one", "several"):
        (tmp_path / name).mkdir()
    one = alone(monkeypatch, "--home", home, "export", *options, "-o", tmp_path / "one")
    several = clew("--home", home, "export", *options, "-o", tmp_path / "several")
    assert len(started) == 3
    assert (several.code, several.err.replace("several", "one")) == (one.code, one.err)
    assert files(tmp_path / "several") == files(tmp_path / "one")
    assert len(files(tmp_path / "several")) == (30 - bad if options[-1] != "ndjson" else len(files(tmp_path / "one")))


@pytest.mark.slow
def test_a_file_in_the_way_stops_everything_behind_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[int]
) -> None:
    assert clew("--home", home, "export", "-o", tmp_path / "all").code == 0
    names = sorted(files(tmp_path / "all"))
    for name in ("one", "several"):
        (tmp_path / name).mkdir()
        (tmp_path / name / names[5]).write_text("precious")
    one = alone(monkeypatch, "--home", home, "export", "-o", tmp_path / "one")
    several = clew("--home", home, "export", "-o", tmp_path / "several")
    assert (several.code, several.err.replace("several", "one")) == (one.code, one.err)
    assert several.code == 6
    assert files(tmp_path / "several") == files(tmp_path / "one")
    begun = len(started)
    assert clew("--home", home, "export", "--force", "-o", tmp_path / "several").code == 0
    assert len(started) == begun + 3
    assert files(tmp_path / "several") == files(tmp_path / "all")


def test_a_large_session_is_streamed(home: Path, monkeypatch: pytest.MonkeyPatch, started: list[int]) -> None:
    monkeypatch.setattr(command_export, "MAX_PART_BYTES", 3000)
    by_whom: list[int] = []
    write = Writer.write

    def noted(writer: Writer, session: StoredSession, out: object) -> None:
        by_whom.append(session.source.size)  # what other processes note stays with them
        write(writer, session, out)  # type: ignore[arg-type]

    monkeypatch.setattr(Writer, "write", noted)
    several = clew("--home", home, "export", "--to", "ndjson")
    assert len(started) == 3
    large = [session.source.size for session in Library(Host.at(home)).sources() if session.source.size >= 3000]
    assert large and [size for size in by_whom if size >= 3000] == large
    one = alone(monkeypatch, "--home", home, "export", "--to", "ndjson")
    assert _TIME.sub(b"", several.raw) == _TIME.sub(b"", one.raw)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0, 1 << 20])
@pytest.mark.parametrize("target", ["ndjson", "folder"])
def test_a_worker_that_dies_ends_the_export_and_what_was_not_written_is_named(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[int], target: str, share: int
) -> None:
    monkeypatch.setattr(parallel, "BATCH_BYTES", share)
    monkeypatch.setattr(parallel, "BATCHES_PER_WORKER", 1)
    sessions = list(Library(Host.at(home)).sources())
    numbers = max(parallel.split_into_batches([session.source.size for session in sessions]), key=len)
    last = sessions[numbers[-1]].path
    write = Writer.write

    def killed(writer: Writer, session: StoredSession, out: object) -> None:
        if os.getpid() != HERE and session.path == last:
            os.kill(os.getpid(), signal.SIGKILL)
        write(writer, session, out)  # type: ignore[arg-type]

    monkeypatch.setattr(Writer, "write", killed)
    words = ("--home", home, "export", *(("--to", "ndjson") if target == "ndjson" else ("-o", tmp_path / "out")))
    several = clew(*words)
    assert several.code == 1 and several.err.startswith("clew: a worker process died; ") and str(last) in several.err
    if target == "ndjson":
        written = len(several.lines)
    else:
        written = sum(path.suffix != ".tmp" for path in (tmp_path / "out").iterdir())
    assert written < len(sessions) and f"{len(sessions) - written} session" in several.err


def test_a_worker_that_dies_replaces_no_file_without_force(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[int]
) -> None:
    assert alone(monkeypatch, "--home", home, "export", "-o", tmp_path / "all").code == 0
    in_the_way = tmp_path / "out" / max(path.name for path in (tmp_path / "all").iterdir())

    def killed(*_: object) -> None:
        # A file that another program wrote after the export began. Renamed, because several workers do this.
        complete = tmp_path / str(os.getpid())
        complete.write_text("precious")
        complete.replace(in_the_way)
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(Writer, "write", killed)
    assert clew("--home", home, "export", "-o", tmp_path / "out").code == 1
    assert in_the_way.read_text() == "precious"


def spawned(*words: str | Path, before: str = "", **options: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", SPREAD + before + "main()", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)  # type: ignore[call-overload, no-any-return]


def are_gone(group: int) -> bool:
    """True once no process of a group is left."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
def test_a_reader_that_leaves_ends_all_processes(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    for at in range(30):
        lines = [json.dumps(claude_line("user", f"u{n}", None, "x" * 1000)) for n in range(200)]
        (folder / f"s{at}.jsonl").write_text("\n".join(lines) + "\n")
    process = spawned("--home", tmp_path, "export", "--to", "ndjson", start_new_session=True)
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.read(1) == b"{"
    process.stdout.close()
    assert (process.wait(timeout=60), process.stderr.read()) == (141, b"")
    process.stderr.close()
    assert are_gone(process.pid)


SLEEP = (
    "import time; from clew.cli.command_export import Writer;"
    "Writer.write = lambda self, session, out: (out.write(b'x'), time.sleep(600)); "
)


@pytest.mark.slow
@pytest.mark.parametrize("whom", ["the command", "all"])
def test_an_interrupt_ends_all_processes_and_leaves_no_file(home: Path, tmp_path: Path, whom: str) -> None:
    out = tmp_path / "out"
    process = spawned("--home", home, "export", "-o", out, before=SLEEP, start_new_session=True)
    deadline = time.monotonic() + 50
    while not (out.is_dir() and len(list(out.iterdir())) >= 3) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(list(out.iterdir())) == 3
    (os.kill if whom == "the command" else os.killpg)(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said.decode().strip()) == (130, "clew: interrupted")
    assert are_gone(process.pid)
    assert list(out.iterdir()) == []


def test_a_worker_lets_go_of_a_session_that_fails(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[int]
) -> None:
    for name in ("out", "failed", "forgotten"):
        (tmp_path / name).mkdir()

    def note(what: str, session: StoredSession) -> None:
        if os.getpid() != HERE:
            (tmp_path / what / session.source.path.name).touch()

    def fail(_writer: Writer, session: StoredSession, _out: object) -> None:
        note("failed", session)
        raise SourceUnreadable("gone")

    monkeypatch.setattr(Writer, "write", fail)
    monkeypatch.setattr(StoredSession, "forget", lambda session: note("forgotten", session))
    assert clew("--home", home, "export", "-o", tmp_path / "out").code == 3
    assert len(started) == 3
    failed, forgotten = (sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("failed", "forgotten"))
    assert forgotten == failed != []


def test_a_small_home_stays_in_one_process(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("forked"))
    assert clew("--home", home, "export", "--to", "ndjson").code == 0


def test_one_process_where_there_is_no_fork(home: Path, monkeypatch: pytest.MonkeyPatch, started: list[int]) -> None:
    monkeypatch.delattr(os, "fork")
    assert clew("--home", home, "export", "--to", "ndjson").code == 0
    assert not started


@pytest.mark.parametrize(
    ("sizes", "batches"),
    [
        ([0, 0, 0], [[0, 1, 2]]),
        ([160, 1, 159, 1, 1, 158], [[0], [1], [2], [3, 4], [5]]),
        ([10] * 64, [[*range(n, n + 4)] for n in range(0, 64, 4)]),
    ],
)
def test_batches_keep_the_order(monkeypatch: pytest.MonkeyPatch, sizes: list[int], batches: list[list[int]]) -> None:
    monkeypatch.setattr(parallel, "MIN_PARALLEL_BYTES", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert parallel.split_into_batches(sizes) == batches
