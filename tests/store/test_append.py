"""Appending: durable on return, in order among threads and processes, and safe when anything fails."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, pairwise
from pathlib import Path

import pytest

from clew.errors import ClewError
from clew.io.file_lock import locked
from clew.io.filesystem import SYSTEM, System
from clew.store import (
    Draft,
    MessageBody,
    MessageRecord,
    Session,
    Store,
    Thinking,
    TodoItem,
    ToolCall,
    ToolResult,
    Usage,
)
from clew.store.layout import Durability
from tests import children
from tests.store.support import Faulty, Quick, assert_whole, lines, log_of, said

NOW = 1_800_000_000.0


@pytest.fixture(params=["disk", "system"])
def level(request: pytest.FixtureRequest) -> Durability:
    """Both levels of durability."""
    level: Durability = request.param
    return level


def drafts(count: int) -> Iterator[Draft]:
    """Prompts, calls, results and replies, each of them plain."""
    for number in range(count):
        step = number % 4
        if step == 0:
            yield Draft(
                MessageRecord(type="user", uuid="", message=MessageBody(role="user", content=f"p{number} \u2603 \n\"'"))
            )
        elif step == 1:
            calls = [ToolCall(id=f"c{number}", name="bash", arguments={"command": "ls"})]
            message = MessageBody(role="assistant", content="", tool_calls=calls)
            yield Draft(MessageRecord(type="assistant", uuid="", message=message, usage=Usage(input_tokens=number)))
        elif step == 2:
            results = [ToolResult(tool_call_id=f"c{number - 1}", tool_name="bash", content="x", success=False)]
            yield Draft(MessageRecord(type="tool_result", uuid="", tool_results=results))
        elif number % 8 == 3:
            yield Draft(MessageRecord(type="system", uuid="", message=MessageBody(role="system", content=f"s{number}")))
        else:
            blocks = [{"type": "text", "text": f"b{number}"}]
            record = MessageRecord(type="assistant", uuid="", message=MessageBody(role="assistant", content=blocks))
            yield Draft(record, extra={"model": "tide-2", "n\u00fcmber": [number, None]})


def still() -> float:
    """A clock that stands still."""
    return NOW


def with_two_messages(place: Path, level: Durability, system: System | None = None) -> Session:
    """A session with two messages."""
    session = Store(place, durability=level, system=system or Quick(), clock=still).session("s")
    session.user("first")
    session.user("second")
    return session


def test_every_kind_of_message_keeps_its_order(tmp_path: Path, level: Durability) -> None:
    with with_two_messages(tmp_path, level) as session:
        plain = session.user("plain")
        session.user("with an id", uuid="mine")
        session.user("with a time", timestamp="2001-02-03T04:05:06.007Z")
        session.user("with todos", todos=[TodoItem(content="a")])
        session.user("with thinking", thinking=Thinking(level="high"))
        session.assistant("with a model", model="m")
        session.user([{"type": "text", "text": "blocks"}])
        session.user("aside", sidechain=True)
        session.user("with more", metadata={"clew": {"seq": 11, "more": True}})
        for odd in (
            MessageRecord(type="tool_result", uuid="", message=MessageBody(role="user", content="no result")),
            MessageRecord(
                type="user", uuid="", message=MessageBody(role="user", content="odd"), branch_parent_uuid="x"
            ),
            MessageRecord(type="note", uuid="", message=MessageBody(role="user", content="of no kind")),  # type: ignore[arg-type]
        ):
            session.append(Draft(odd))
        for number in range(5):
            session.user(f"behind {number}")
        branch = session.user("a branch", parent=plain.uuid)
    records = lines(log_of(tmp_path))
    assert [record["metadata"]["clew"]["seq"] for record in records] == list(range(1, len(records) + 1))
    for before, record in pairwise(records[:-1]):
        assert record["parentUuid"] == before["uuid"]
    assert records[-1]["uuid"] == branch.uuid and records[-1]["parentUuid"] == plain.uuid
    told = [record for record in records[5:-1] if record["type"] != "tool_result"]
    assert all(record["todos"] == [{"content": "a", "status": "pending"}] for record in told)
    assert "todos" not in next(record for record in records if record["type"] == "tool_result")
    assert session.metadata["lastPrompt"] == "a branch" and session.metadata["model"] == "m"


def test_the_same_draft_twice_is_written_once(tmp_path: Path, level: Durability) -> None:
    with with_two_messages(tmp_path, level) as session:
        [draft] = drafts(1)
        receipt = session.append(draft)
        assert (receipt.written, session.append(draft)) == (True, type(receipt)(receipt.uuid, receipt.seq, False))
    assert len(lines(log_of(tmp_path))) == 3


def test_what_cannot_be_spelled_is_refused_and_the_next_is_written(tmp_path: Path, level: Durability) -> None:
    with with_two_messages(tmp_path, level) as session:
        session.user("plain")
        with pytest.raises(ClewError):
            session.user("\ud800")
        with pytest.raises(ClewError):
            session.append(Draft(MessageRecord(type="user", uuid="", message=MessageBody(role="user", content=b"x"))))
        with pytest.raises(AttributeError):
            session.append("no draft")  # type: ignore[arg-type]
        assert session.user("and on").seq == 4
    assert said(log_of(tmp_path)) == ["first", "second", "plain", "and on"]


def test_every_message_has_its_own_time_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = NOW + 0.0005
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    session = Store(tmp_path, durability="system", clock=lambda: now).session("s")
    for number in range(40):
        monkeypatch.chdir(tmp_path / ("a" if number < 20 else "b"))
        session.user(f"{number}")
        now += 0.001
    records = lines(log_of(tmp_path))
    session.close()
    assert [record["timestamp"][-4:-1] for record in records] == [f"{number:03d}" for number in range(40)]
    assert [Path(record["context"]["cwd"]).name for record in records] == ["a"] * 20 + ["b"] * 20
    assert session.metadata["updatedAt"] == records[-1]["timestamp"]
    now -= 10  # the clock is set back
    with session:
        session.user("earlier")
        session.user("and earlier")
    assert lines(log_of(tmp_path))[-1]["timestamp"] < records[0]["timestamp"]


def test_a_durable_message_says_its_folder_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However short the time between two messages is; a folder that is gone is the last one that was known."""
    for name in ("a", "b", "gone"):
        (tmp_path / name).mkdir()
    with with_two_messages(tmp_path, "disk") as session:
        for name in ("a", "b", "b", "a", "gone"):
            monkeypatch.chdir(tmp_path / name)
            session.user(name)
        (tmp_path / "gone").rmdir()
        session.user("gone")
        monkeypatch.chdir(tmp_path)
    records = lines(log_of(tmp_path))[2:]
    assert [Path(record["context"]["cwd"]).name for record in records] == [*said(log_of(tmp_path))[2:]]


def test_a_durable_message_is_synced_on_return(tmp_path: Path) -> None:
    calls: list[str] = []

    class Watched(Quick):
        @staticmethod
        def write(descriptor: int, content: bytes) -> int:
            calls.append("write")
            return os.write(descriptor, content)

        @staticmethod
        def sync(_: int) -> None:
            calls.append("sync")

    with with_two_messages(tmp_path, "disk", Watched()) as session:
        for number in range(20):
            calls.clear()
            session.user(f"{number}")
            assert calls == ["write", "sync"]


@pytest.mark.skipif(not System.write_through, reason="a sync follows each write on this system")
def test_a_durable_message_waits_for_the_disk_in_its_write(tmp_path: Path) -> None:
    import fcntl

    with Store(tmp_path, clock=still).session("s") as session:
        for number in range(5):
            session.user(f"{number}")
        flags = fcntl.fcntl(session._writer._log._descriptor, fcntl.F_GETFL)
        assert flags & System.write_through == System.write_through


def test_S05_a_failed_sync_removes_the_record(tmp_path: Path) -> None:
    system = Faulty(0, only="sync")
    with with_two_messages(tmp_path, "disk", system) as session:
        session.user("safe")
        system.at = system.count + 1
        with pytest.raises(OSError, match="injected"):
            session.user("not safe")
        assert said(log_of(tmp_path)) == ["first", "second", "safe"]
        assert session.user("and on").seq == 4
    assert_whole(tmp_path)


@pytest.mark.parametrize("torn", [False, True])
def test_what_came_in_without_the_lock_is_noticed(tmp_path: Path, level: Durability, torn: bool) -> None:
    """A program that takes no lock appends between two messages."""
    now = NOW
    session = Store(tmp_path, durability=level, system=Quick(), clock=lambda: now).session("s")
    session.user("first")
    session.user("second")
    foreign = {**lines(log_of(tmp_path))[-1], "uuid": "foreign", "metadata": {"clew": {"seq": 3}}}
    with log_of(tmp_path).open("a") as log:
        log.write('{"type":"us' if torn else json.dumps(foreign) + "\n")
    now += 0.0015 if level == "system" else 0
    assert session.user("behind").seq == (3 if torn else 4)
    assert lines(log_of(tmp_path))[-1]["parentUuid"] == lines(log_of(tmp_path))[-2]["uuid"]
    session.close()
    assert len(said(log_of(tmp_path))) == (3 if torn else 4)


@pytest.mark.slow
def test_S08_another_handle_is_let_in(tmp_path: Path, level: Durability) -> None:
    """In the same thread, in another thread and in another process: all get the lock, and numbers stay in order."""
    one, other = with_two_messages(tmp_path, level), Store(tmp_path, durability=level).session("s")
    assert other.user("from the other").seq == 3
    assert one.user("again").seq == 4
    thread = threading.Thread(target=lambda: other.user("in a thread"), daemon=True)
    thread.start()
    thread.join(60)
    program = "import sys; from clew.store import Store; print(Store(sys.argv[1]).session('s').user('process').seq)"
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) == 6
    assert one.user("and on").seq == 7
    one.close()
    other.close()
    assert_whole(tmp_path)


def test_S08_a_writer_without_a_pause_lets_others_in(tmp_path: Path, level: Durability) -> None:
    """Another process gets the lock while messages are appended without a pause."""
    stop = threading.Event()
    session = Store(tmp_path, durability=level, system=Quick()).session("s")

    def append() -> None:
        while not stop.is_set():
            session.user("one of many")

    thread = threading.Thread(target=append, daemon=True)
    thread.start()
    try:
        while not log_of(tmp_path).exists():
            time.sleep(0.001)
        for _ in range(5):
            with locked(SYSTEM, log_of(tmp_path), 5):
                size = log_of(tmp_path).stat().st_size
                time.sleep(0.005)
                assert log_of(tmp_path).stat().st_size == size
    finally:
        stop.set()
        thread.join(60)
    session.close()
    assert len(lines(log_of(tmp_path))) == session.metadata["messageCount"]


def test_S07_threads_share_a_handle(tmp_path: Path, level: Durability) -> None:
    session = Store(tmp_path, durability=level, system=Quick()).session("s")
    given: list[list[int]] = [[] for _ in range(4)]

    def append(number: int) -> None:
        for step in range(400):
            given[number].append(session.user(f"{number}.{step}").seq)

    threads = [threading.Thread(target=append, args=(number,), daemon=True) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    session.close()
    assert sorted(chain(*given)) == list(range(1, 1601))
    assert all(numbers == sorted(numbers) for numbers in given)
    records = lines(log_of(tmp_path))
    assert [record["metadata"]["clew"]["seq"] for record in records] == list(range(1, 1601))
    assert all(record["parentUuid"] == before["uuid"] for before, record in pairwise(records))


@pytest.mark.slow
def test_S07_processes_without_a_pause(tmp_path: Path, level: Durability) -> None:
    program = """
import sys
from clew.store import Store
session = Store(sys.argv[1], durability=sys.argv[3]).session("s")
for number in range(int(sys.argv[4])):
    print(session.user(f"{sys.argv[2]}.{number}").seq)
"""
    command, count = [sys.executable, "-c", program, str(tmp_path)], 600 if level == "system" else 100
    more = [level, str(count)]
    running = [subprocess.Popen([*command, str(one), *more], stdout=subprocess.PIPE, text=True) for one in range(3)]
    numbers = [[int(line) for line in one.communicate(timeout=120)[0].split()] for one in running]
    assert sorted(chain(*numbers)) == list(range(1, 3 * count + 1))
    words = said(log_of(tmp_path))
    for one in range(3):
        assert [word for word in words if word.startswith(f"{one}.")] == [f"{one}.{number}" for number in range(count)]
        assert [words.index(f"{one}.{number}") + 1 for number in range(count)] == numbers[one]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_has_no_part_in_it(tmp_path: Path, level: Durability) -> None:
    session = with_two_messages(tmp_path, level)
    child = children.begun(lambda: [session.user("child"), session.user("child again")])
    try:
        session.user("parent")
    finally:
        code = children.ended(child)
    assert code == 0
    session.user("parent again")
    session.close()
    records = lines(log_of(tmp_path))
    assert len({record["uuid"] for record in records}) == len(records) == 6
    assert [record["metadata"]["clew"]["seq"] for record in records] == list(range(1, 7))


def test_a_log_that_was_erased_meanwhile_is_not_written_to(tmp_path: Path, level: Durability) -> None:
    from clew.store.erase import erase_session

    session = with_two_messages(tmp_path, level)
    erase_session(log_of(tmp_path).parent)
    with pytest.raises(ClewError, match="erased"):
        session.user("too late")


def test_a_message_after_the_log_was_removed_is_not_acknowledged(tmp_path: Path, level: Durability) -> None:
    session = with_two_messages(tmp_path, level)
    log_of(tmp_path).unlink()
    for _ in range(2):
        with pytest.raises(ClewError, match="erased"):
            session.user("too late")
    assert not log_of(tmp_path).exists()


def test_a_message_after_the_log_was_replaced_is_in_the_new_one(tmp_path: Path, level: Durability) -> None:
    session, log = with_two_messages(tmp_path, level), log_of(tmp_path)
    (tmp_path / "copy").write_bytes(log.read_bytes().splitlines(keepends=True)[0])
    (tmp_path / "copy").replace(log)
    assert session.user("in the new log").seq == 2
    session.close()
    assert said(log) == ["first", "in the new log"]
    assert session.metadata["lastPrompt"] == "in the new log"


KINDS = [("before", errno.EIO), ("before", errno.EINTR), ("torn", errno.ENOSPC), ("short", errno.EIO)]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "error"), KINDS)
def test_S05_faults_at_every_call_of_many_appends(tmp_path: Path, kind: str, error: int, level: Durability) -> None:
    at = 0
    while True:
        at += 1
        system, place, acknowledged = Faulty(at, error, kind=kind), tmp_path / str(at), []
        world = Store(place, durability=level, clock=still)._config._replace(system=system)
        session = Session(log_of(place).parent, world)
        for number in range(8):
            with suppress(OSError, ClewError):
                session.user(f"{at}.{number}")
                acknowledged.append(f"{at}.{number}")
        session._writer._log.drop()
        with Store(place, system=Quick()).session("s") as healthy:
            healthy.user("afterwards")
        words = said(log_of(place))
        assert words == [*acknowledged, "afterwards"]
        numbers = [record["metadata"]["clew"]["seq"] for record in lines(log_of(place))]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(acknowledged) >= 7
        if not system.hit:
            return


def test_S05_short_writes_are_finished(tmp_path: Path, level: Durability) -> None:
    class Stingy(Quick):
        write = staticmethod(lambda descriptor, content: os.write(descriptor, content[:7]))

    with with_two_messages(tmp_path, level, Stingy()) as session:
        for number in range(20):
            session.user(f"{number}")
    assert said(log_of(tmp_path)) == ["first", "second", *map(str, range(20))]


@pytest.mark.slow
def test_S04_what_an_interrupt_meets_is_there_once_or_not_at_all(tmp_path: Path, level: Durability) -> None:
    """A person presses Ctrl-C at any moment: what was acknowledged is there, and the session goes on."""
    program = """
import json, signal, sys
from clew.store import Store
from clew.io.filesystem import System
class Quick(System):
    write_through, sync = 0, staticmethod(lambda _: None)
inside, known = False, []
def press(*_):
    global inside
    if inside:
        inside = False
        raise KeyboardInterrupt
signal.signal(signal.SIGINT, press)
session = Store(sys.argv[1], durability=sys.argv[2], system=Quick()).session("s")
print("ready", flush=True)
for number in range(20000):
    try:
        inside = True
        receipt = session.user(str(number))
        inside = False
        known.append((number, receipt.seq))
    except KeyboardInterrupt:
        pass
session.close()
print(json.dumps(known))
"""
    command = [sys.executable, "-c", program, str(tmp_path), level]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        running.stdout.readline()
        while running.poll() is None and not _is_large(log_of(tmp_path)):
            time.sleep(0.003)
            with suppress(ProcessLookupError):
                running.send_signal(signal.SIGINT)
        known = json.loads(running.stdout.read())
    words = said(log_of(tmp_path))
    assert len(set(words)) == len(words)
    assert all(words[seq - 1] == str(number) for number, seq in known)
    assert len(known) > 1000
    numbers = [record["metadata"]["clew"]["seq"] for record in lines(log_of(tmp_path))]
    assert numbers == list(range(1, len(numbers) + 1))


def _is_large(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 5_000_000


@pytest.mark.slow
def test_S04_writers_without_a_pause_are_killed(tmp_path: Path, level: Durability) -> None:
    """What was acknowledged outlives the process, however it ends; the others go on at once."""
    program = """
import os, sys
from clew.store import Store
session = Store(sys.argv[1], durability=sys.argv[3]).session("s")
while True:
    receipts = [session.user(sys.argv[2]) for _ in range(20)]
    os.write(1, "".join(f"{receipt.uuid} {receipt.seq}\\n" for receipt in receipts).encode())
"""
    known: dict[str, int] = {}
    for turn in range(8):
        command = [sys.executable, "-c", program, str(tmp_path), str(turn), level]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(1 + turn % 3)]
        for one in running:
            assert one.stdout is not None
            first = one.stdout.readline()
            time.sleep(0.003 * turn)
            one.kill()
            answers = (first + one.communicate()[0]).split(b"\n")[:-1]
            known |= {uuid.decode(): int(seq) for uuid, seq in (answer.split() for answer in answers)}
    with Store(tmp_path, durability=level).session("s") as session:
        session.user("the last")
    records = lines(log_of(tmp_path))
    seqs = {record["uuid"]: record["metadata"]["clew"]["seq"] for record in records}
    assert len(seqs) == len(records) and list(seqs.values()) == list(range(1, len(records) + 1))
    assert len(known) > 200 and known.items() <= seqs.items()
    assert_whole(tmp_path)


def test_a_message_may_follow_any_of_a_batch(tmp_path: Path) -> None:
    """Also one that was given no id, before one that was."""
    with Store(tmp_path, system=Quick()).session("s") as session:
        bodies = [MessageBody(role="user", content=text) for text in ("one", "two", "three")]
        ids = ("", "mine", "")
        batch = [
            Draft(MessageRecord(type="user", uuid=uuid, message=body)) for uuid, body in zip(ids, bodies, strict=True)
        ]
        first, *_ = session.extend(batch)
        assert session.user("a branch", parent=first.uuid).seq == 4
    assert lines(log_of(tmp_path))[3]["parentUuid"] == first.uuid


def test_a_handle_knows_what_others_appended_before_its_own(tmp_path: Path) -> None:
    one, two = (Store(tmp_path, system=Quick()).session("s") for _ in range(2))
    with one, two:
        one.user("a", uuid="a")
        two.user("b", uuid="b")
        one.user("c")
        assert not one.user("b", uuid="b").written
        assert one.user("d", parent="b").seq == 4
    assert said(log_of(tmp_path)) == ["a", "b", "c", "d"]
