"""Cases in which bytes were once lost, or could have been: each of them comes back."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clew.agents.base import SourceFile
from clew.agents.claude_code import ClaudeCode
from clew.agents.registry import claimant
from clew.agents.sage_agent import SageAgent
from clew.analysis.document_validation import check_document
from clew.analysis.usage import TOKEN_FIELDS, UsageLedger
from clew.errors import InvalidDocument, WouldLose
from clew.export.document import write_document
from clew.export.native import write_native
from clew.export.reading import DocumentStream, read_documents
from clew.export.verify import verify
from clew.library import StoredSession
from clew.model.events import Event
from tests.demo_home import write_small_demo

CLAUDE = ClaudeCode()
TIME = "2026-01-01T00:00:00Z"
SESSION = "11111111-1111-4111-8111-111111111111"


def transcript(folder: Path, *records: dict[str, Any]) -> SourceFile:
    path = folder / f"{SESSION}.jsonl"
    path.write_bytes(b"".join(json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records))
    return CLAUDE.locate(path)


def document(source: SourceFile) -> bytes:
    text = io.BytesIO()
    write_document(CLAUDE, source, text, timestamp=TIME)
    return text.getvalue()


def reply(**more: Any) -> dict[str, Any]:
    message = {"model": "m", "id": "i", "type": "message", "role": "assistant", "content": [], **more}
    return {"parentUuid": None, "isSidechain": False, "message": message, "type": "assistant", "uuid": "u",
            "timestamp": "2026-01-11T22:00:00.000Z", "sessionId": SESSION}  # fmt: skip


def test_empty_objects_come_back(tmp_path: Path) -> None:
    usage = {"input_tokens": 1, "cache_creation": {}}
    assert verify(CLAUDE, transcript(tmp_path, reply(usage={}), reply(usage=usage), reply(usage={}))).holds


def test_usage_in_two_places_comes_back_in_either_order(tmp_path: Path) -> None:
    outer = {"input_tokens": 1}
    first = {"type": "assistant", "usage": outer, "message": {"usage": {"input_tokens": 5, "output_tokens": 7}}}
    last = {"type": "assistant", "message": {"usage": {"input_tokens": 5}}, "usage": outer}
    source = transcript(tmp_path, first, last)
    assert verify(CLAUDE, source).holds
    counts = [unit.value["metadata"]["token_usage"]["input_tokens"] for unit in CLAUDE.units(source)]
    assert counts == [5, 5]


@pytest.mark.parametrize("damage", [b"\n", b"[1]\n", b'{"type":"file_his'])
def test_damage_in_a_part_stays_in_its_part(tmp_path: Path, damage: bytes) -> None:
    write_small_demo(tmp_path / "home")
    (snapshots,) = (tmp_path / "home").rglob("snapshots.jsonl")
    snapshots.write_bytes(snapshots.read_bytes() + damage)
    agent = SageAgent()
    assert verify(agent, agent.locate(snapshots.parent / "messages.jsonl")).different == []


def test_an_empty_document_replaces_nothing(tmp_path: Path) -> None:
    source = transcript(tmp_path)
    stream = DocumentStream(io.BytesIO(document(source)))
    (written,) = write_native(stream, tmp_path / "new").files
    assert written.read_bytes() == b""
    written.write_bytes(b"precious\n")
    with pytest.raises(WouldLose):
        write_native(stream, tmp_path / "new")
    assert written.read_bytes() == b"precious\n"


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    text = json.loads(document(transcript(tmp_path, reply())))
    text["native"]["files"].append({"path": f"{SESSION}.jsonl", "records": ["other"]})
    with pytest.raises(InvalidDocument, match="two files"):
        write_native(DocumentStream(io.BytesIO(json.dumps(text).encode())), tmp_path / "new")


@pytest.mark.parametrize("depth", [150, 700, 980, 985, 990, 995, 5000])
def test_P01_any_depth_is_written_and_read(tmp_path: Path, depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    line = json.dumps(reply(), separators=(",", ":")).encode()[:-1] + b',"toolUseResult":' + deep + b"}\n"
    source = transcript(tmp_path, reply())
    source.path.write_bytes(source.path.read_bytes() + line * 2)
    assert verify(CLAUDE, source).holds
    assert [found for found in check_document(document(source)) if found.severity == "error"] == []
    assert StoredSession(CLAUDE, source).document().session.id == SESSION


@pytest.mark.parametrize("end", [b"", b" ", b"\t", b"\r", b"\r\n", b"\n\r", b"\x0b"])
def test_a_last_line_may_end_in_anything(tmp_path: Path, end: bytes) -> None:
    line = json.dumps(reply(), separators=(",", ":")).encode()
    source = transcript(tmp_path, reply())
    source.path.write_bytes(b"\n".join([line] * 12) + end)
    assert verify(CLAUDE, source).holds


def test_numbers_without_end_do_not_stop_a_document(tmp_path: Path) -> None:
    source = transcript(tmp_path, reply())
    line = json.dumps(reply(), separators=(",", ":")).encode()[:-1] + b',"toolUseResult":1e999}\n'
    source.path.write_bytes(source.path.read_bytes() + line)
    assert verify(CLAUDE, source).holds
    assert len(StoredSession(CLAUDE, source).document().messages) == 2


def test_S12_a_session_may_grow_while_it_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = transcript(tmp_path, reply())
    events = ClaudeCode.events

    def growing(self: ClaudeCode, source: SourceFile) -> Iterator[Event]:
        with source.path.open("ab") as stream:
            stream.write(json.dumps(reply()).encode() + b"\n")
        return events(self, source)

    monkeypatch.setattr(ClaudeCode, "events", growing)
    proof = verify(CLAUDE, source)
    assert (proof.different, proof.records) == ([], 1)


def test_P01_deep_neighbours_are_survived(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    (snapshots,) = (tmp_path / "home").rglob("snapshots.jsonl")
    (snapshots.parent / "metadata.json").write_bytes(b"[" * 20000)
    agent = SageAgent()
    assert verify(agent, agent.locate(snapshots.parent / "messages.jsonl")).holds
    (tmp_path / "deep.jsonl").write_bytes(b"[" * 15000)
    claimant(tmp_path / "deep.jsonl")


@pytest.mark.slow
def test_any_number_of_models_can_be_counted() -> None:
    ledger = UsageLedger()
    for number in range(70_000):
        ledger.note(str(number), f"model {number}", [1] * len(TOKEN_FIELDS))
    assert ledger.total().calls == 70_000


@pytest.mark.slow
def test_S13_times_without_a_zone_do_not_follow_the_machine(tmp_path: Path) -> None:
    def prompt(uuid: str, parent: str | None, time: str) -> dict[str, Any]:
        said = {"role": "user", "content": uuid}
        return {"type": "user", "uuid": uuid, "parentUuid": parent, "message": said, "timestamp": time}

    lines = [
        prompt("a", None, "2026-01-01T00:00:00Z"),
        prompt("x", "a", "2026-01-01T05:00:00"),
        prompt("y", "a", "2026-01-01T04:00:00Z"),
    ]
    source = transcript(tmp_path, *lines)
    code = (
        "import sys; from pathlib import Path; from clew.agents.claude_code import ClaudeCode as C; a = C();"
        "print([b.uuid for b in a.facts(a.locate(Path(sys.argv[1]))).tree.graph().fork_points[0].branches])"
    )
    for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
        command = [sys.executable, "-c", code, str(source.path)]
        done = subprocess.run(command, env={**os.environ, "TZ": zone}, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "['y', 'x']"


def again(**how: Any) -> Callable[[bytes], bytes]:
    return lambda text: json.dumps(json.loads(text), **how).encode()


@pytest.mark.parametrize(
    "respell",
    [
        again(indent=2),
        again(),
        again(ensure_ascii=False),
        again(separators=(",", ":")),
        again(indent=1, ensure_ascii=False),
    ],
    ids=["indent", "plain", "unicode", "compact", "indent unicode"],
)
def test_a_document_that_another_tool_spelled_anew_gives_the_same_bytes(
    tmp_path: Path, respell: Callable[[bytes], bytes]
) -> None:
    write_small_demo(tmp_path / "home")
    for path in sorted((tmp_path / "home").rglob("*.jsonl")):
        if path.name == "history.jsonl" or ".claude" not in path.parts:
            continue
        source = CLAUDE.locate(path)
        (stream,) = read_documents(io.BytesIO(respell(document(source))))
        target = tmp_path / "new" / path.stem
        restored = write_native(stream, target)
        assert restored.files[0].read_bytes() == path.read_bytes()
        assert (restored.inexact, restored.is_edited) == ([], False)
