"""An original that travels along and was damaged stops no conversion; it is a loss like any other."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from clew.agents import registry
from clew.convert import origin
from clew.convert.origin import is_marked
from clew.convert.prepare import prepare
from clew.errors import WouldLose
from clew.host import Host
from clew.sources.local import Found, in_homes
from tests.cli.running import clew
from tests.convert.said import only, said
from tests.receivers import RECEIVERS

LOSS = "the included original"
PLACES = ["codex", "gemini", "claude-code"]
"""In two of them it lies inside the session's file, in the third beside it."""
Damage = Callable[[list[bytes]], list[bytes]]


def there(demo: Path, target: str, home: Path) -> Found:
    """A session of Sage Agent that was converted."""
    source = next(each.source for each in in_homes([Host.at(demo)], ["sage-agent"]))
    written = prepare(registry.get("sage-agent"), source, target).write(home, allow_loss=True)
    return only(Path(written.files[0]))


@pytest.mark.parametrize("target", RECEIVERS)
def test_an_original_is_no_unknown_record(demo: Path, tmp_path: Path, target: str) -> None:
    found = there(demo, target, tmp_path)
    records = [unit.value for unit in found.agent.units(found.source) if not unit.is_message]
    assert [each["type"] for each in records if each["kind"] == "other"] == []


def kept_in(found: Found) -> Path:
    beside = found.source.path.with_name(found.source.path.name + origin.ORIGINAL_FILE_SUFFIX)
    return beside if beside.exists() else found.source.path


def change(path: Path, damage: Damage) -> None:
    """Damage the lines of an original and nothing else."""
    lines = path.read_bytes().splitlines(keepends=True)
    first = next(at for at, line in enumerate(lines) if line.startswith(origin.MARK))
    path.write_bytes(b"".join([*lines[:first], *damage(lines[first:])]))


def respelled(line: bytes, data: str) -> bytes:
    return json.dumps({**json.loads(line), "data": data}, separators=(",", ":")).encode() + b"\n"


def not_json(lines: list[bytes]) -> list[bytes]:
    return [origin.MARK + b"garbage\n", *lines[1:]]


def torn(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-1], lines[-1][:-40]]


def headless(lines: list[bytes]) -> list[bytes]:
    return lines[1:]


def without_end(lines: list[bytes]) -> list[bytes]:
    return lines[:1]


def no_base64(lines: list[bytes]) -> list[bytes]:
    return [lines[0], *(respelled(line, "%%%%" + json.loads(line)["data"]) for line in lines[1:])]


def shorter(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-1], respelled(lines[-1], json.loads(lines[-1])["data"][:-40])]


def other_bytes(lines: list[bytes]) -> list[bytes]:
    packed = zstandard.ZstdCompressor().compress(b"x" * 1_000_000)
    return [lines[0], respelled(lines[1], base64.b64encode(packed).decode())]


def no_text(lines: list[bytes]) -> list[bytes]:
    return [lines[0], origin.MARK + b'"data":"\xff\xfe"}\n']


def boundless(lines: list[bytes]) -> list[bytes]:
    value = json.loads(lines[0])
    value["origin"]["files"][0]["size"] = 1 << 50
    return [json.dumps(value, separators=(",", ":")).encode() + b"\n", *lines[1:]]


def described(edit: Callable[[dict[str, Any]], object]) -> Damage:
    """What is said of the original, edited."""

    def damage(lines: list[bytes]) -> list[bytes]:
        value = json.loads(lines[0])
        edit(value["origin"])
        return [json.dumps(value, separators=(",", ":")).encode() + b"\n", *lines[1:]]

    return damage


def telling(**said: Any) -> Damage:
    return described(lambda value: value.update(said))


def of_first(**said: Any) -> Damage:
    return described(lambda value: value["files"][0].update(said))


def glued(lines: list[bytes]) -> list[bytes]:
    return [line.rstrip(b"\n") for line in lines]


SOUND = [
    not_json,
    torn,
    headless,
    without_end,
    no_base64,
    shorter,
    other_bytes,
    no_text,
    boundless,
    glued,
    telling(files=[]),
    telling(target=".sage/sessions"),
    telling(target=""),
    telling(target=".sage/sessions/a\0b/messages.jsonl"),
    telling(target=f".sage/sessions/{'x' * 300}/messages.jsonl"),
    telling(target=".claude/projects/x/y.jsonl"),
    of_first(name="messages.jsonl"),
    of_first(size=0),
    described(lambda value: value["files"].append(value["files"][0])),
    described(lambda value: value["files"].append({**value["files"][0], "name": "a\0b", "size": 0})),
    described(lambda value: value["children"].append({**value, "children": []})),
]


@pytest.mark.parametrize("damage", SOUND)
@pytest.mark.parametrize("target", ["sage-agent", "sage-emacs"])
@pytest.mark.parametrize("place", PLACES)
def test_a_damaged_original_is_a_loss(demo: Path, tmp_path: Path, place: str, target: str, damage: Damage) -> None:
    converted = there(demo, place, tmp_path)
    change(kept_in(converted), damage)
    prepared = prepare(converted.agent, only(converted.source.path).source, target)
    assert LOSS in [loss.what for loss in prepared.describe(tmp_path).losses]
    with pytest.raises(WouldLose):
        prepared.write(tmp_path / "back")
    assert not (tmp_path / "back").exists()
    copy = only(Path(prepared.write(tmp_path / "back", allow_loss=True).files[0]))
    assert said(copy.agent, copy.source) == said(converted.agent, converted.source)


@pytest.mark.parametrize("place", ["codex", "gemini"])
def test_lines_that_are_glued_to_the_session_are_a_loss(demo: Path, tmp_path: Path, place: str) -> None:
    path = there(demo, place, tmp_path).source.path
    path.write_bytes(path.read_bytes().replace(b"}\n" + origin.MARK, b"}" + origin.MARK))
    found = only(path)
    losses = prepare(found.agent, found.source, "sage-agent").describe(tmp_path).losses
    assert LOSS in [loss.what for loss in losses]


@pytest.mark.parametrize("place", PLACES)
def test_lines_that_another_program_spelled_anew_still_hold_the_original(
    demo: Path, tmp_path: Path, place: str
) -> None:
    def respell(lines: list[bytes]) -> list[bytes]:
        return [json.dumps(json.loads(line), sort_keys=True).encode() + b"\n" for line in lines]

    converted = there(demo, place, tmp_path)
    change(kept_in(converted), respell)
    back = prepare(converted.agent, only(converted.source.path).source, "sage-agent").write(tmp_path / "back")
    source = next(each.source for each in in_homes([Host.at(demo)], ["sage-agent"]))
    assert Path(back.files[0]).read_bytes() == source.path.read_bytes()


def test_words_about_an_original_are_none(demo: Path, tmp_path: Path) -> None:
    words = json.dumps({"text": '{"type":"clew-origin","data":""}'}).encode() + b"\n"
    assert not is_marked(words)
    assert not is_marked(words[:-4])
    assert not is_marked(b'{"type":"other","input":{"name":"clew-origin"}}')


def test_the_command_says_the_loss_of_an_original_without_files(demo: Path, tmp_path: Path) -> None:
    converted = there(demo, "codex", tmp_path)
    change(kept_in(converted), telling(files=[]))
    (tmp_path / "back").mkdir()
    words = ("resume", str(converted.source.path), "--in", "sage-agent", "--home", str(tmp_path / "back"), "--json")
    done = clew(*words)
    assert (done.code, "damaged" in done.err) == (6, True)
    assert clew(*words, "--allow-loss").code == 0


@pytest.mark.parametrize("content", [b"", b"\x00\xffgarbage", b'{"type":"other"}\n'])
def test_a_file_beside_that_holds_no_original_is_a_loss(demo: Path, tmp_path: Path, content: bytes) -> None:
    converted = there(demo, "claude-code", tmp_path)
    kept_in(converted).write_bytes(content)
    for target in ("sage-agent", "codex"):
        losses = prepare(converted.agent, converted.source, target).describe(tmp_path).losses
        assert [loss.what for loss in losses if loss.message is None] == [LOSS]


def test_a_session_that_never_was_converted_has_no_such_loss(demo: Path, tmp_path: Path) -> None:
    for found in in_homes([Host.at(demo)], ["sage-agent", "codex"]):
        losses = prepare(found.agent, found.source, "claude-code").describe(tmp_path).losses
        assert LOSS not in [loss.what for loss in losses]


def test_a_session_that_was_packed_since_comes_back(demo: Path, tmp_path: Path) -> None:
    converted = there(demo, "codex", tmp_path)
    plain = converted.source.path
    packed = plain.with_name(plain.name + ".zst")
    packed.write_bytes(zstandard.ZstdCompressor().compress(plain.read_bytes()))
    plain.unlink()
    found = only(packed)
    back = prepare(found.agent, found.source, "sage-agent").write(tmp_path / "back")
    source = next(each.source for each in in_homes([Host.at(demo)], ["sage-agent"]))
    assert Path(back.files[0]).read_bytes() == source.path.read_bytes()
