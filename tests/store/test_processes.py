"""Many processes on one session, killed at random moments."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from clew.store import Store
from tests.cli.running import COMMAND
from tests.store.support import assert_whole, lines, log_of

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the writers are forked")


@pytest.mark.slow
def test_S04_sixty_kills_lose_and_double_nothing() -> None:
    """The share of the soak that runs every time; `python scripts/kill_soak.py` is the whole."""
    command = [sys.executable, str(ROOT / "scripts" / "kill_soak.py"), "--kills", "60", "--seed", "7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 lost, 0 duplicate, 0 out of order, 0 torn reads" in done.stdout


@pytest.mark.slow
def test_S04_a_killed_command_leaves_what_it_acknowledged(tmp_path: Path) -> None:
    command = [*COMMAND, "record", "--store", str(tmp_path), "--session", "s"]
    writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert writer.stdin is not None
    assert writer.stdout is not None
    said = []
    for number in range(10):
        writer.stdin.write(json.dumps({"role": "user", "content": f"{number}"}).encode() + b"\n")
        writer.stdin.flush()
        said.append(json.loads(writer.stdout.readline()))
    writer.send_signal(signal.SIGKILL)
    writer.wait(60)
    writer.stdin.close()
    writer.stdout.close()
    records = lines(log_of(tmp_path))
    assert [record["uuid"] for record in records] == [answer["uuid"] for answer in said]
    assert [answer["seq"] for answer in said] == list(range(1, 11))


WRITE = """
import sys
from clew.store import Store
with Store(sys.argv[1]).session("s") as session:
    for number in range(int(sys.argv[3])):
        receipt = session.user(f"{sys.argv[2]} {number}")
        print(receipt.uuid, receipt.seq, flush=True)
"""


@pytest.mark.slow
def test_S07_eight_writers_and_four_readers(tmp_path: Path) -> None:
    count = 25
    stop = threading.Event()
    faults: list[object] = []

    def read() -> None:
        session = Store(tmp_path).session("s")
        seen = 0
        while not stop.is_set():
            numbers = [record["metadata"]["clew"]["seq"] for record in session.records()]
            if numbers != list(range(1, len(numbers) + 1)) or len(numbers) < seen:
                faults.append(numbers)
            seen = len(numbers)
            if len(session.path()) < seen:
                faults.append(session.path())
            time.sleep(0.002)

    readers = [threading.Thread(target=read, daemon=True) for _ in range(4)]
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE, tmp_path, str(name), str(count)], stdout=subprocess.PIPE, text=True
        )
        for name in range(8)
    ]
    for reader in readers:
        reader.start()
    try:
        answers = [writer.communicate(timeout=120)[0].split() for writer in writers]
    finally:
        # Whatever happens: a thread that goes on would keep the whole run from ending.
        stop.set()
        for writer in writers:
            writer.kill()
    for reader in readers:
        reader.join(60)
    assert [writer.returncode for writer in writers] == [0] * 8
    assert faults == []
    records = lines(log_of(tmp_path))
    place = {record["uuid"]: record["metadata"]["clew"]["seq"] for record in records}
    assert len(place) == len(records) == 8 * count
    for words in answers:
        acknowledged = dict(zip(words[0::2], map(int, words[1::2]), strict=True))
        assert len(acknowledged) == count
        assert all(place[uuid] == seq for uuid, seq in acknowledged.items())
        assert sorted(acknowledged.values()) == list(acknowledged.values())
    assert [record["parentUuid"] for record in records][1:] == [record["uuid"] for record in records][:-1]
    assert_whole(tmp_path)
