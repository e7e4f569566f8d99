"""A lake in an object store: the S3 of an emulator, started on loopback."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from clew.cli.main import main
from clew.errors import RemoteFailed
from clew.warehouse.lake.compact import compact
from clew.warehouse.lake.store import FolderStore, RemoteStore, Store, open_store
from tests.redact.planted import Planter
from tests.warehouse.lake.worlds import NAMES, Machine, Rows, rows, say, write

pytestmark = pytest.mark.slow
BUCKET = "loom"
SECRET = Planter("s3").aws_secret()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of an emulator with an empty bucket."""
    for package in ("moto", "s3fs"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install 'clew[dev]'")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(address)
        urllib.request.urlopen(urllib.request.Request(f"{address}/{BUCKET}", method="PUT")).close()
        yield address
    finally:
        process.terminate()
        process.wait()


def _wait_for(address: str) -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(f"{address}/moto-api/", timeout=2).close()
            return
        except OSError:
            time.sleep(0.2)
    raise AssertionError("the emulator does not start")


@pytest.fixture
def s3(server: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A target of its own for each test."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mira")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return f"s3://{BUCKET}/{request.node.name}"


def _shown(store: Store) -> Rows:
    return rows(store, ("sessions", "messages", "tool_calls"))


def test_a_lake_in_a_bucket_is_as_one_in_a_folder(tmp_path: Path, s3: str) -> None:
    machine, store, folder = Machine(tmp_path, "one"), open_store(s3), FolderStore(tmp_path / "lake")
    for day, name in enumerate(NAMES[:2], 1):
        say(machine, name, 10, day)
    report = write(machine, store)
    assert report == write(machine, folder)
    assert [one.name for one in store.list("")] == [one.name for one in folder.list("")]
    assert _shown(store) == _shown(folder)
    again = write(machine, store)
    assert (again.written, again.objects) == (0, 0)


def test_an_object_is_created_once(s3: str) -> None:
    store = open_store(s3)
    assert [store.put("a/b", b"first"), store.put("a/b", b"second")] == [True, False]
    assert store.read("a/b") == b"first"
    store.remove("a/b")
    store.remove("a/b")
    with pytest.raises(FileNotFoundError):
        store.read("a/b")


def test_small_objects_are_merged_in_a_bucket(tmp_path: Path, s3: str) -> None:
    machine, store = Machine(tmp_path, "one"), open_store(s3)
    for name in NAMES[:2]:
        say(machine, name, 10)
        write(machine, store)
    before, count = _shown(store), len(store.list(""))
    report = compact(store, datetime(2027, 1, 1, tzinfo=UTC))
    assert _shown(store) == before
    assert len(store.list("")) < count
    assert report.before > report.after


def test_statistics_are_asked_of_a_bucket(tmp_path: Path, s3: str) -> None:
    machine = Machine(tmp_path, "one")
    say(machine, NAMES[0], 10)
    run = CliRunner().invoke
    assert run(main, ["lake", "write", s3, "--home", str(machine.home)]).exit_code == 0
    asked = run(main, ["stats", "--engine", f"duckdb:{s3}", "--json"])
    assert asked.exit_code == 0, asked.output
    assert asked.stdout == run(main, ["stats", "--engine", "sqlite", "--home", str(machine.home), "--json"]).stdout


def test_a_bucket_that_is_not_there_is_told(tmp_path: Path, s3: str) -> None:
    machine = Machine(tmp_path, "one")
    say(machine, NAMES[0], 5)
    said = CliRunner().invoke(main, ["lake", "write", "s3://nowhere/lake", "--home", str(machine.home)])
    assert said.exit_code == 7
    assert said.output.count("\n") == 1
    assert SECRET not in said.output


def test_a_server_that_is_down_is_told(tmp_path: Path, s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, "one")
    say(machine, NAMES[0], 5)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    said = CliRunner().invoke(main, ["lake", "write", "s3://elsewhere/lake", "--home", str(machine.home)])
    assert said.exit_code == 7
    assert said.output.count("\n") == 1
    assert SECRET not in said.output


def test_a_connection_that_is_lost_in_the_middle_leaves_nothing_half(
    tmp_path: Path, s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, store = Machine(tmp_path, "one"), open_store(s3)
    say(machine, NAMES[0], 10)
    write(machine, store)
    before = _shown(store)
    say(machine, NAMES[1], 10, day=2)
    assert isinstance(store, RemoteStore)
    pipe, left = store.fs.pipe_file, [3]

    def lost(*given: object, **more: object) -> object:
        left[0] -= 1
        if left[0] < 0:
            raise ConnectionResetError("gone")
        return pipe(*given, **more)

    monkeypatch.setattr(store.fs, "pipe_file", lost)
    with pytest.raises(RemoteFailed):
        write(machine, store)
    monkeypatch.setattr(store.fs, "pipe_file", pipe)
    assert _shown(store) == before
    write(machine, store)
    assert len(_shown(store)["messages"]) == 20
