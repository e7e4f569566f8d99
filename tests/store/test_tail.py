"""A log whose end was torn off: what is whole stays, the rest is set aside, and the next append is clean."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from clew.store import Store
from tests.store.support import Quick, assert_whole, lines, log_of, said


def written(place: Path, count: int) -> bytes:
    with Store(place, durability="system").session("s") as session:
        for number in range(count):
            session.user(f"message {number}")
    return log_of(place).read_bytes()


@pytest.mark.slow
@pytest.mark.seed("S1-31")
def test_S06_every_truncation_point(tmp_path: Path) -> None:
    """Every byte of the last three of a hundred records, around every line end, and some of the others."""
    whole = written(tmp_path, 100)
    log = log_of(tmp_path)
    starts = [at + 1 for at, byte in enumerate(whole) if byte == 10]
    near = {start + step for start in starts for step in (-2, -1, 0, 1)}
    points = sorted({*range(starts[-4], len(whole) + 1), *range(0, len(whole), 151), *near})
    for point in (point for point in points if point <= len(whole)):
        log.write_bytes(whole[:point])
        kept = whole[:point].count(b"\n") + (point + 1 in starts)
        session = Store(tmp_path, system=Quick()).session("s")
        receipt = session.user("behind")
        session._writer._log.drop()
        assert receipt.seq == kept + 1, point
        assert said(log) == [f"message {number}" for number in range(kept)] + ["behind"]
        assert log.read_bytes().startswith(whole[: starts[kept - 1] if kept else 0])


def test_S06_what_is_torn_off_goes_into_quarantine(tmp_path: Path) -> None:
    whole = written(tmp_path, 3)
    log = log_of(tmp_path)
    start = whole[:-1].rfind(b"\n") + 1
    torn = whole[start:-20]
    log.write_bytes(whole[:start] + torn)
    with Store(tmp_path).session("s") as session:
        session.user("behind")
    [entry] = lines(log.with_name("quarantine.jsonl"))
    assert (entry["file"], entry["start"]) == ("messages.jsonl", start)
    assert base64.b64decode(entry["base64"]) == torn
    assert_whole(tmp_path)


@pytest.mark.parametrize("junk", [b"\0" * 5000, b'{"a":', b"[1]", b"\xff\xfe", b"12", b"{" * 70_000])
def test_S06_junk_at_the_end_is_set_aside(tmp_path: Path, junk: bytes) -> None:
    written(tmp_path, 2)
    with log_of(tmp_path).open("ab") as log:
        log.write(junk)
    with Store(tmp_path).session("s") as session:
        assert session.user("behind").seq == 3
    assert_whole(tmp_path)


def test_S06_a_long_record_without_its_line_end_is_kept(tmp_path: Path) -> None:
    with Store(tmp_path).session("s") as session:
        session.user("x" * 300_000)
    log = log_of(tmp_path)
    log.write_bytes(log.read_bytes()[:-1])
    with Store(tmp_path).session("s") as session:
        assert session.user("behind").seq == 2
    assert [len(text) for text in said(log)] == [300_000, 6]


def test_readers_do_not_see_what_is_not_whole(tmp_path: Path) -> None:
    written(tmp_path, 2)
    with log_of(tmp_path).open("ab") as log:
        log.write(json.dumps({"type": "user", "uuid": "torn", "parentUuid": None}).encode())
    session = Store(tmp_path).get("s")
    assert len(list(session.records())) == len(session.path()) == 2
    assert "torn" not in session.path()


def test_a_damaged_line_in_the_middle_is_passed_over(tmp_path: Path) -> None:
    whole = written(tmp_path, 3).splitlines(keepends=True)
    log = log_of(tmp_path)
    log.write_bytes(whole[0] + b'{"type":"user","uuid":\n\n' + whole[1] + b"[]\n" + whole[2])
    session = Store(tmp_path).session("s")
    assert len(session.path()) == 3
    assert session.user("behind").seq == 4
    assert len(session.path()) == 4
