"""Records that are longer than the limit: kept byte for byte, named, and never decoded, searched or shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import pytest

from tests.cli.running import COMMAND, Ran, run
from tests.redact.planted import Planter

MEGABYTE = 1 << 20
LIMIT = MEGABYTE
"""The limit in most of these tests, in bytes; the real one is 64 times as much."""
TIME = "2026-10-24T19:22:30.000Z"
SESSION = "11111111-2222-4333-8444-555555555555"
SECRET = Planter("long records").github()

Write = Callable[[Path, str], Path]


def lines(path: Path, *records: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as out:
        for record in records:
            out.write(json.dumps(record, separators=(",", ":")) + "\n")
    return path


def claude(home: Path, text: str) -> Path:
    said = [("u1", None, "user", "Where?"), ("a1", "u1", "assistant", "Low."), ("u2", "a1", "user", text)]
    records = [
        {"type": role, "uuid": uuid, "parentUuid": parent, "sessionId": SESSION, "cwd": "/x", "timestamp": TIME,
         "message": {"role": role, "content": [{"type": "text", "text": words}]}}
        for uuid, parent, role, words in (*said, ("a2", "u2", "assistant", "High."))
    ]  # fmt: skip
    return lines(home / ".claude" / "projects" / "-x" / f"{SESSION}.jsonl", *records)


def items(text: str) -> list[dict[str, object]]:
    said = (("user", "Where?"), ("assistant", "Low."), ("user", text), ("assistant", "High."))
    return [{"type": "message", "role": role, "content": [{"type": "text", "text": words}]} for role, words in said]


def codex(home: Path, text: str) -> Path:
    head = {"id": SESSION, "timestamp": TIME, "cwd": "/x", "originator": "codex_cli_rs", "cli_version": "0.166.0"}
    records = [{"timestamp": TIME, "type": "response_item", "payload": item} for item in items(text)]
    path = home / ".codex" / "sessions" / "2026" / "10" / "24" / f"rollout-2026-10-24T19-22-30-{SESSION}.jsonl"
    return lines(path, {"timestamp": TIME, "type": "session_meta", "payload": head}, *records)


def codex_document(home: Path, text: str) -> Path:
    head = {"id": SESSION, "timestamp": TIME, "instructions": ""}
    path = home / ".codex" / "sessions" / f"rollout-2025-05-01-{SESSION}.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"session": head, "items": items(text)}, indent=2))
    return path


def chat(text: str) -> tuple[dict[str, object], list[dict[str, object]]]:
    said = (("user", "Where?"), ("gemini", "Low."), ("user", text), ("gemini", "High."))
    head: dict[str, object] = {"sessionId": SESSION, "projectHash": "ab" * 32, "startTime": TIME, "lastUpdated": TIME}
    return head, [
        {"id": f"m{n}", "timestamp": TIME, "type": kind, "content": words} for n, (kind, words) in enumerate(said)
    ]


def gemini(home: Path, text: str) -> Path:
    head, messages = chat(text)
    return lines(home / ".gemini/tmp/tide/chats" / f"session-2026-10-24T19-22-{SESSION[:8]}.jsonl", head, *messages)


def gemini_document(home: Path, text: str) -> Path:
    head, messages = chat(text)
    path = home / ".gemini/tmp/tide/chats" / f"session-2026-10-24T19-22-{SESSION[:8]}.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**head, "messages": messages}, indent=2))
    return path


def sage_document(home: Path, text: str) -> Path:
    said = (("user", "Where?"), ("assistant", "Low."), ("user", text), ("assistant", "High."))
    messages = [{"role": role, "content": words} for role, words in said]
    path = home / ".emacs.d" / "sage" / "sessions" / "tide.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"name": "tide", "created_at": TIME, "workspace": "/x", "messages": messages}, indent=2))
    return path


LINES = {"claude": claude, "codex": codex, "gemini": gemini}
DOCUMENTS = {"codex document": codex_document, "gemini document": gemini_document, "sage-emacs document": sage_document}
ALL = [pytest.param(write, id=name) for name, write in {**LINES, **DOCUMENTS}.items()]


def limited(*words: str | Path, home: Path, limit: int = LIMIT) -> Ran:
    return run("--home", home, *words, env={**os.environ, "CLEW_MAX_LINE": str(limit)})


def straddling(size: int = 3 * MEGABYTE) -> str:
    """Long text with a secret in every place in which a limit or a piece may end."""
    return (f"The key is {SECRET} here. " * (size // 20))[:size]


@pytest.mark.slow
@pytest.mark.parametrize("write", ALL)
def test_it_comes_back_byte_for_byte(tmp_path: Path, write: Write) -> None:
    path = write(tmp_path / "home", straddling())
    done = limited("verify", path, home=tmp_path / "home")
    assert done.code == 0 and "1 of 1 files restored byte for byte" in done.out
    raw = limited("show", path, "--raw", home=tmp_path / "home")
    assert raw.raw.rstrip(b"\n") == path.read_bytes().rstrip(b"\n")


@pytest.mark.parametrize("write", ALL)
def test_it_is_one_problem_with_its_place_and_size(tmp_path: Path, write: Write) -> None:
    path = write(tmp_path / "home", straddling())
    found = limited("validate", path, "--json", home=tmp_path / "home").json
    (problem,) = [each for each in found if each["code"] == "line-too-long"]
    is_line = path.suffix == ".jsonl"
    first = problem["end"] - problem["start"]
    assert first > 3 * MEGABYTE and f"{first:,} bytes" in problem["message"]
    text = path.read_bytes()[problem["start"] : problem["end"]]
    assert (b"\n" not in text and text.startswith(b"{") and text.endswith(b"}")) if is_line else len(text) == first


@pytest.mark.slow
@pytest.mark.parametrize("write", ALL)
def test_a_remark_with_its_size_stands_in_its_place(tmp_path: Path, write: Write) -> None:
    path = write(tmp_path / "home", straddling())
    done = limited("show", path, home=tmp_path / "home")
    assert "a record of 3.1 MB is not shown" in done.out and "The key is" not in done.out
    if path.suffix == ".jsonl":
        assert done.out.index("Low.") < done.out.index("a record of") < done.out.index("High.")
    data = limited("show", path, "--json", home=tmp_path / "home")
    assert "a record of 3.1 MB" in data.err and "The key is" not in data.out
    assert all(message["index"] for message in data.lines)


@pytest.mark.slow
@pytest.mark.parametrize("write", ALL)
def test_redaction_masks_it_whole(tmp_path: Path, write: Write) -> None:
    home = tmp_path / "home"
    path = write(home, straddling())
    for words in (("export", path, "--redact", "secrets"), ("show", path, "--raw", "--redact", "secrets")):
        done = limited(*words, home=home)
        assert done.code == 0 and b"[REDACTED:too_many_candidates:" in done.raw
        assert SECRET[:12].encode() not in done.raw and SECRET[-12:].encode() not in done.raw
        assert len(done.raw) < 100_000
    masked = limited("redact", "files", path, home=home)
    assert SECRET[:12].encode() not in masked.raw and SECRET[-12:].encode() not in masked.raw


@pytest.mark.parametrize("write", ALL)
def test_a_scan_says_what_it_did_not_read(tmp_path: Path, write: Write) -> None:
    path = write(tmp_path / "home", "harmless " * (3 * MEGABYTE // 9))
    done = limited("redact", "scan", path, "--json", home=tmp_path / "home")
    assert done.code == 1
    (row,) = done.json["findings"]
    assert row["kind"] == "unread" and row["line"] == (1 if path.suffix == ".json" else row["line"])


@pytest.mark.slow
@pytest.mark.parametrize("write", [pytest.param(write, id=name) for name, write in LINES.items()])
def test_what_stands_around_it_is_read(tmp_path: Path, write: Write) -> None:
    home = tmp_path / "home"
    path = write(home, straddling())
    assert "High." in limited("export", path, "--to", "markdown", home=home).out
    assert limited("graph", path, home=home).code == 0
    assert limited("sync", home=home).code == 0
    assert limited("search", "High", home=home).code == 0
    assert limited("search", "key", home=home).code == 1
    (row,) = limited("list", "--json", home=home).json
    assert row["messages"] == 3


@pytest.mark.slow
def test_no_piece_of_it_is_taken_for_a_record(tmp_path: Path) -> None:
    """A line that is built so that its last piece is a whole record says nothing all the same."""
    path = claude(tmp_path / "home", "short")
    *before, last = path.read_bytes().splitlines(keepends=True)
    forged = last.replace(b"High.", b"Forged.").replace(b'"a2"', b'"a9"')
    path.write_bytes(b"".join(before) + b"x" * LIMIT + forged + last)
    for words in (("show", path), ("export", path), ("export", path, "--to", "html"), ("graph", path)):
        done = limited(*words, home=tmp_path / "home")
        assert done.code == 0
        messages = done.json["messages"] if words[0] == "export" and len(words) == 2 else done.out
        assert "Forged." not in str(messages)


@pytest.mark.slow
@pytest.mark.parametrize("packer", ["gzip", "zstd"])
def test_it_may_be_packed(tmp_path: Path, packer: str) -> None:
    path = claude(tmp_path / "home", straddling())
    if packer == "gzip":
        subprocess.run(["gzip", path], check=True)
        path = path.with_name(path.name + ".gz")
    else:
        zstandard = pytest.importorskip("zstandard")
        packed = path.with_name(path.name + ".zst")
        packed.write_bytes(zstandard.compress(path.read_bytes()))
        path.unlink()
        path = packed
    assert "a record of 3.1 MB is not shown" in limited("show", path, home=tmp_path / "home").out
    done = limited("export", path, "--redact", "secrets", home=tmp_path / "home")
    assert SECRET.encode() not in done.raw


@pytest.mark.parametrize("begins", ["{", "[", "", "\n\n"], ids=repr)
def test_a_text_file_with_such_a_line_is_masked_there_and_read_elsewhere(tmp_path: Path, begins: str) -> None:
    path = tmp_path / "notes.txt"
    short = f"The other key is {SECRET}.\n"
    path.write_text(begins + straddling() + "\n" + short + straddling() + "\n" + "Nothing here.\n")
    masked = limited("redact", "files", path, home=tmp_path).out
    assert SECRET[:12] not in masked and SECRET[-12:] not in masked
    assert "The other key is" in masked and "Nothing here." in masked and len(masked) < 10_000


MEASURE = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[2:], stdout=open(sys.argv[1], "wb"), stderr=subprocess.STDOUT)
print(os.wait4(process.pid, 0)[2].ru_maxrss * 1024)
"""


def peak(*words: str | Path, home: Path) -> tuple[int, bytes]:
    """The most memory that the command held, in bytes, and what it printed.

    A process counts what its parent held when it was started, so a small one starts it.
    """
    command = [*COMMAND, "--home", str(home), *map(str, words)]
    measured = [sys.executable, "-c", MEASURE, str(home / "out"), *command]
    used = subprocess.run(measured, capture_output=True, text=True, check=True).stdout
    return int(used), (home / "out").read_bytes()


@pytest.fixture(scope="module")
def long_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with a session in which one line has 100 MB."""
    home = tmp_path_factory.mktemp("long")
    path = claude(home, "@")
    head, tail = path.read_bytes().split(b"@")
    with path.open("wb") as out:
        for piece in chain([head], (b"All of this is said. " * 50_000 for _ in range(100)), [tail]):
            out.write(piece)
    yield home
    path.unlink()


WORDS = ["show", "graph", "redact scan", "verify", "stats", "list", "sync"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "wait4"), reason="nobody tells what a process used")
@pytest.mark.parametrize("words", WORDS)
def test_a_line_of_100_megabytes_takes_little_memory(long_home: Path, words: str) -> None:
    """The line has 105 MB, so this is half as much again and 150 MB for the program."""
    path = next((long_home / ".claude").rglob("*.jsonl"))
    reference = [] if words in ("stats", "list", "sync") else [path]
    used, out = peak(*words.split(), *reference, home=long_home)
    assert used < 1.5 * path.stat().st_size + 150 * MEGABYTE
    assert words != "verify" or b"1 of 1 files restored byte for byte" in out


@pytest.mark.slow
@pytest.mark.parametrize("text", ["\n" * 2 * MEGABYTE, " " * 3 * MEGABYTE], ids=["lines", "one line"])
def test_much_blank_space_before_a_record_is_passed_over(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text(text + f'\n{{"text":"The key is {SECRET}."}}\n')
    masked = limited("redact", "files", path, home=tmp_path).out
    assert "The key is" in masked and SECRET not in masked


@pytest.mark.slow
def test_a_higher_limit_holds_for_redaction_too(tmp_path: Path) -> None:
    file = tmp_path / "long.jsonl"
    record = {"type": "user", "key": f"The key is {SECRET} here.", "text": "tide " * 13_500_000}
    file.write_text(json.dumps(record) + "\n")
    done = limited("redact", file, home=tmp_path, limit=128 * MEGABYTE)
    assert done.code == 0 and SECRET not in done.out
    assert done.raw.endswith(b'tide "}\n') and b"The key is [REDACTED:" in done.raw
