"""Threats P01 to P09 against the record reader: every byte comes back, and every problem has its place."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clew.agents.checking import check_source
from clew.agents.claude_code import ClaudeCode
from clew.export.verify import verify
from clew.io import records
from clew.io.codec import MAX_DEPTH
from clew.io.records import RawRecord, read_records
from clew.model import Problem
from tests.unit.samples import SESSION, claude_line, read_source, write_lines

AGENT = ClaudeCode()
GOOD = json.dumps(claude_line("user", "u-good", None, "a whole record"), separators=(",", ":")).encode()
ROOT = Path(__file__).resolve().parents[2]
MEGABYTE = 1 << 20


def read(raw: bytes) -> list[RawRecord]:
    return list(read_records(io.BytesIO(raw)))


def values(raw: bytes) -> list[object]:
    return [record.value for record in read(raw) if record.value is not None]


def codes(raw: bytes) -> list[str]:
    return [code for record in read(raw) for code in record.findings]


def problems_of(folder: Path, raw: bytes) -> list[Problem]:
    """What the check says about a transcript of these bytes, all of which must come back."""
    path = folder / f"{SESSION}.jsonl"
    path.write_bytes(raw)
    source = AGENT.locate(path)
    proof = verify(AGENT, source)
    assert proof.different == []
    assert proof.bytes == len(raw)
    return list(check_source(AGENT, source))


def assert_placed(folder: Path, before: bytes, bad: bytes, code: str) -> None:
    """A bad line between good ones is a problem with file, line and byte span, and the good ones are read."""
    raw = before + bad + b"\n" + GOOD + b"\n"
    found = [problem for problem in problems_of(folder, raw) if problem.code == code]
    assert found, code
    problem = found[0]
    assert problem.file == str(folder / f"{SESSION}.jsonl")
    assert problem.line == before.count(b"\n") + 1
    assert problem.start is not None
    assert problem.end is not None
    assert len(before) <= problem.start <= problem.end <= len(before) + len(bad)
    uuids = [message.get("uuid") for message in read_source(AGENT.locate(folder / f"{SESSION}.jsonl")).messages]
    assert uuids[-1] == "u-good"


@pytest.mark.parametrize("shape", [b"[", b'{"a":', b'[{"b":'])
@pytest.mark.parametrize("closed", [True, False])
def test_P01_nesting_of_100_000_is_a_problem(tmp_path: Path, shape: bytes, closed: bool) -> None:
    depth = 100_000
    ends = (b"]" if shape == b"[" else b"}" if shape.startswith(b"{") else b"}]") * depth if closed else b""
    bad = b'{"type":"user","message":' + shape * depth + b"1" + ends + (b"}" if closed else b"")
    assert_placed(tmp_path, GOOD + b"\n", bad, "too-deep")


@pytest.mark.parametrize("depth", [MAX_DEPTH, MAX_DEPTH + 1, 500, 980, 1000, 2000])
@pytest.mark.parametrize("space", [b"", b" "])
def test_P01_any_depth_comes_back(tmp_path: Path, depth: int, space: bytes) -> None:
    record = GOOD[:-1] + b',"deep":' + space + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"
    found = [problem.code for problem in problems_of(tmp_path, record + b"\n")]
    read_as_record = bool(values(record + b"\n"))
    assert read_as_record is ("too-deep" not in found)
    # Between this depth and 100,000, how deep the decoder can go depends on the version of Python.
    assert read_as_record or depth > MAX_DEPTH


def test_P01_a_record_before_the_deep_one_is_recovered() -> None:
    found = read(b'{"a":1}' + b"[" * 100_000 + b"\n")
    assert [record.value for record in found] == [{"a": 1}, None]


@pytest.mark.parametrize(
    "number",
    ["9" * 5000, "-" + "1" * 5000, str(2**64 + 1), "-0", "-0.0", "1e999", "-1e999", "0.1234567890123456789", "1E5"],
)
def test_P02_numbers_keep_their_spelling(tmp_path: Path, number: str) -> None:
    bad = GOOD[:-1] + f',"n":{number}}}'.encode()
    problems_of(tmp_path, bad + b"\n")
    (value,) = values(bad + b"\n")
    assert isinstance(value, dict)
    kept = value["n"]
    if isinstance(kept, str):
        assert kept == number
        assert "number-range" in codes(bad + b"\n")
    elif isinstance(kept, int):
        assert str(kept) == number.replace("-0", "0")
    else:
        assert kept == float(number)
        assert math.isfinite(kept)


def test_P02_a_number_without_end_is_reported(tmp_path: Path) -> None:
    assert_placed(tmp_path, b"", GOOD[:-1] + b',"n":1e999}', "number-range")
    assert_placed(tmp_path, b"", GOOD[:-1] + b',"n":' + b"7" * 5000 + b"}", "number-range")


def test_P02_seventeen_digits_are_not_rounded() -> None:
    (value,) = values(b'{"n":0.30000000000000004,"m":9007199254740993}\n')
    assert value == {"n": 0.30000000000000004, "m": 9007199254740993}


def test_P03_of_duplicate_keys_the_last_counts(tmp_path: Path) -> None:
    assert_placed(tmp_path, GOOD + b"\n", b'{"type":"user","a":1,"a":2}', "duplicate-key")
    assert values(b'{"a":1,"a":2}\n') == [{"a": 2}]


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_P04_not_a_number_is_read_and_never_written(tmp_path: Path, word: str) -> None:
    assert_placed(tmp_path, b"", GOOD[:-1] + f',"n":{word}}}'.encode(), "number-range")
    source = write_lines(tmp_path, GOOD[:-1] + f',"n":{word}}}'.encode())
    text = io.BytesIO()
    from clew.export.document import write_document

    write_document(AGENT, source, text, timestamp="2026-01-01T00:00:00Z")

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    json.loads(text.getvalue(), parse_constant=refuse)


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (rb"\ud83c", "lone-surrogate"),
        (rb"\udf0a\ud83c", "lone-surrogate"),
        (b"\xed\xa0\xbc\xed\xbc\x8a", "invalid-utf8"),  # CESU-8
        (b"\xc0\xaf", "invalid-utf8"),  # overlong
        (b"\xe0\x80\xaf", "invalid-utf8"),
        (b"\xff\xfe", "invalid-utf8"),
        (b"caf\xe9", "invalid-utf8"),
        (b"\xf4\x90\x80\x80", "invalid-utf8"),  # above U+10FFFF
    ],
)
def test_P05_text_that_is_no_text(tmp_path: Path, bad: bytes, code: str) -> None:
    line = GOOD.replace(b"a whole record", b"see " + bad)
    assert_placed(tmp_path, GOOD + b"\n", line, code)
    message = read_source(write_lines(tmp_path, line)).messages[0]
    text = message["content"][0]["text"]
    assert text.startswith("see \N{REPLACEMENT CHARACTER}") or text.startswith("see caf\N{REPLACEMENT CHARACTER}")
    assert text.encode()


def test_P05_a_lone_surrogate_in_a_key(tmp_path: Path) -> None:
    assert_placed(tmp_path, b"", GOOD[:-1] + rb',"\ud83c":1}', "lone-surrogate")


def test_P06_nul_runs_are_skipped_and_reported(tmp_path: Path) -> None:
    assert_placed(tmp_path, GOOD + b"\n", b"\0" * 500 + GOOD.replace(b"u-good", b"u-two"), "nul-run")
    assert [value for value in values(b"\0" * 9 + b'{"a":1}\n') if value] == [{"a": 1}]
    assert codes(b'{"a":1}\n' + b"\0" * 4096) == ["nul-run"]


def test_P06_an_escaped_nul_is_text(tmp_path: Path) -> None:
    line = GOOD.replace(b"a whole record", rb"a\u0000b")
    assert not [p for p in problems_of(tmp_path, line + b"\n") if p.severity != "note"]
    assert read_source(write_lines(tmp_path, line)).messages[0]["content"] == [{"type": "text", "text": "a\0b"}]


@pytest.mark.parametrize("before", [b"", GOOD + b"\n"])
def test_P07_a_byte_order_mark_anywhere(tmp_path: Path, before: bytes) -> None:
    assert_placed(tmp_path, before, b"\xef\xbb\xbf" + GOOD.replace(b"u-good", b"u-two"), "byte-order-mark")


def test_P07_only_line_feeds_end_lines(tmp_path: Path) -> None:
    line = GOOD.replace(b"a whole record", "one\u2028two\u2029three\x85\x0bfour\\rfive".encode())
    raw = line + b"\r\n" + GOOD.replace(b"u-good", b"u-two") + b"\n"
    problems_of(tmp_path, raw)
    found = read(raw)
    assert [record.line for record in found] == [1, 2]
    assert [record.end for record in found] == [b"\r\n", b"\n"]
    (first, _) = read_source(AGENT.locate(tmp_path / f"{SESSION}.jsonl")).messages
    assert first["content"][0]["text"] == "one\u2028two\u2029three\x85\x0bfour\rfive"


def test_P07_a_carriage_return_alone_ends_nothing(tmp_path: Path) -> None:
    raw = b'{"a":1}\r{"b":2}\n'
    assert values(raw) == [{"a": 1}, {"b": 2}]
    assert codes(raw) == ["glued-records", "glued-records"]
    problems_of(tmp_path, raw)


@pytest.mark.parametrize("blank", [b"", b" ", b"\t \t", b"\r"])
def test_P07_blank_lines_and_no_final_newline(tmp_path: Path, blank: bytes) -> None:
    raw = blank + b"\n" + GOOD + b"\n" + blank + b"\n" + GOOD.replace(b"u-good", b"u-two")
    found = problems_of(tmp_path, raw)
    assert [problem.line for problem in found if problem.code == "blank-line"] == [1, 3]
    assert len(values(raw)) == 2


READ_IT = """
import sys
from pathlib import Path
from tests.memory import peak_bytes
from clew.agents.claude_code import ClaudeCode
agent = ClaudeCode()
source = agent.locate(Path(sys.argv[1]))
size = 0
for event in agent.events(source):
    if type(event).__name__ == "Message":
        size += len(event.content[0].text)
print(size, peak_bytes())
"""


def test_P08_a_line_of_60_megabytes_needs_bounded_memory(tmp_path: Path) -> None:
    size = 60 * MEGABYTE
    line = claude_line("assistant", "u1", None, [{"type": "text", "text": "@"}])
    head, tail = json.dumps(line, separators=(",", ":")).split("@")
    path = tmp_path / f"{SESSION}.jsonl"
    with path.open("wb") as handle:
        handle.write(head.encode())
        for _ in range(60):
            handle.write(b"x" * MEGABYTE)
        handle.write(tail.encode() + b"\n")
    done = subprocess.run([sys.executable, "-c", READ_IT, path], capture_output=True, text=True, check=True, cwd=ROOT)
    read_size, peak = (int(word) for word in done.stdout.split())
    assert read_size == size
    assert peak < 4 * size + 64 * MEGABYTE


def test_P08_a_line_beyond_the_limit_is_kept_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MAX_RECORD_BYTES", 1000)
    monkeypatch.setattr(records, "PIECE", 300)
    bad = b'{"type":"user","text":"' + b"x" * 2500 + b'"}'
    raw = GOOD + b"\n" + bad + b"\n" + GOOD + b"\n"
    found = read(raw)
    pieces = [record for record in found if "line-too-long" in record.findings]
    assert b"".join(record.text for record in pieces) == bad + b"\n"
    assert max(len(record.text) for record in pieces) <= 300
    assert [record.line for record in found if record.value] == [1, 3]
    assert b"".join(record.text for record in found) == raw


def test_P09_glued_records_are_taken_apart(tmp_path: Path) -> None:
    assert_placed(tmp_path, GOOD + b"\n", GOOD.replace(b"u-good", b"u-2") + b'{"type":"summary"}', "glued-records")
    assert values(b'{"a":1}{"b":2} {"c":3}\n') == [{"a": 1}, {"b": 2}, {"c": 3}]


def test_P09_a_cut_record_before_a_whole_one(tmp_path: Path) -> None:
    cut = GOOD[:90]
    assert_placed(tmp_path, b"", cut + GOOD.replace(b"u-good", b"u-two"), "fragment")
    found = read(cut + b'{"type":"summary","summary":"s"}\n')
    assert [(record.raw, record.value) for record in found] == [
        (cut, None),
        (b'{"type":"summary","summary":"s"}', {"type": "summary", "summary": "s"}),
    ]


@pytest.mark.parametrize("cut", range(1, len(GOOD), 17))
def test_P09_a_record_cut_anywhere_is_a_torn_tail(tmp_path: Path, cut: int) -> None:
    raw = GOOD + b"\n" + GOOD[:cut]
    found = problems_of(tmp_path, raw)
    torn = [problem for problem in found if problem.code == "torn-tail"]
    assert [(problem.line, problem.start, problem.end) for problem in torn] == [(2, len(GOOD) + 1, len(raw))]


def test_P09_a_line_that_only_looks_like_records_takes_bounded_time() -> None:
    # Every place looks like the start of a record, and each is found wrong at the very end of the line.
    line = b'{"a":' * 150 + b"[" + b"1," * 100_000
    begun = time.process_time()
    assert codes(line + b"\n") == ["malformed-json"]
    assert time.process_time() - begun < 10


@pytest.mark.parametrize("line", [b"[1,2]", b'"text"', b"null", b"42", b"true"])
def test_lines_that_are_no_object(tmp_path: Path, line: bytes) -> None:
    assert_placed(tmp_path, GOOD + b"\n", line, "not-an-object")


def test_lines_that_are_no_json_at_all(tmp_path: Path) -> None:
    assert_placed(tmp_path, GOOD + b"\n", b"{not json}", "malformed-json")


@pytest.mark.seed("S3-3", "S3-27", "S4-1")
def test_each_line_stands_alone(tmp_path: Path) -> None:
    lines = [GOOD.replace(b"u-good", b"u-%d" % number).replace(b"whole", "füße".encode()) for number in range(4)]
    whole = b"".join(line + b"\n" for line in lines)
    alone = [read(line + b"\n")[0].value for line in lines]
    assert [record.value for record in read(whole)] == alone
    assert [value["message"]["content"] for value in alone if value] == ["a füße record"] * 4
    # A line that is damaged takes no other with it.
    lines[1] = lines[1][:50]
    assert values(b"".join(line + b"\n" for line in lines)) == [alone[0], alone[2], alone[3]]


@pytest.mark.parametrize("length", [*range(90, 106), 127, 128, 129, 163, 164, 200, 1000])
@pytest.mark.parametrize("before", [0, 1, 28, 29, 63, 64, 65])
@pytest.mark.parametrize("end", [b"\n", b"", b"\nlast\n"])
def test_lines_in_chunks_are_too_long_where_single_lines_are(
    monkeypatch: pytest.MonkeyPatch, length: int, before: int, end: bytes
) -> None:
    monkeypatch.setattr(records, "MAX_RECORD_BYTES", 100)
    monkeypatch.setattr(records, "PIECE", 30)
    raw = b"y" * before + b"\n" * bool(before) + b"x" * length + end
    pieces = [text for text, whole in records.read_chunks(io.BufferedReader(io.BytesIO(raw)), 64) if not whole]
    assert pieces == [text for text, _, _, whole in records.read_lines(io.BytesIO(raw)) if not whole]
    assert b"".join(text for text, _ in records.read_chunks(io.BufferedReader(io.BytesIO(raw)), 64)) == raw
    assert bool(pieces) == (length + end.startswith(b"\n") > 100 or (not end and length == 100))
