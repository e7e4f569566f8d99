"""Packed data is masked, since nothing can look into it; so is the original that a converted session carries."""

from __future__ import annotations

import base64
import gzip
import json
import random
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path

import pytest
import zstandard

from clew.agents import registry
from clew.convert.prepare import prepare
from clew.host import Host
from clew.redact import Marker, redact
from clew.redact.native_files import mask_file, masks
from clew.redact.redactor import MaskSettings, Redactor
from clew.sources.local import in_homes
from tests.cli.running import clew
from tests.redact.planted import Planter

TOKEN = Planter("packed").github()
NOISE = random.Random(5).randbytes(3000)
TEXT = b"the token is " + TOKEN.encode() + b" " + NOISE
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "zstd": zstandard.ZstdCompressor().compress,
    "gzip": gzip.compress,
}
SPELLINGS: dict[str, Callable[[bytes], str]] = {
    "one line": lambda packed: base64.b64encode(packed).decode(),
    "an address": lambda packed: base64.urlsafe_b64encode(packed).decode().rstrip("="),
    "lines": lambda packed: base64.encodebytes(packed).decode(),
}


def redactor(profile: str = "secrets") -> Redactor:
    return Redactor(MaskSettings(profile, Marker(b"key")))


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("key", ["data", "signature", "text"])
def test_packed_data_is_masked_wherever_it_stands(packer: str, spelling: str, key: str) -> None:
    packed = SPELLINGS[spelling](PACKERS[packer](TEXT))
    assert packed[40:80] not in redact(f"see {packed} there")
    for value in ({key: packed}, {"a": json.dumps({key: packed})}, {"a": [f"data:application/x;base64,{packed}"]}):
        masked = json.dumps(redactor().value(value))
        assert "packed_data" in masked
        assert not any(packed[at : at + 60] in masked for at in range(0, len(packed) - 60, 60))
        raw = json.dumps(value).encode() + b"\n"
        assert b"packed_data" in b"".join(mask_file(partial(BytesIO, raw), redactor()))


@pytest.mark.parametrize("text", ["KLUv", "H4sI", "KLUv/Q and words", "a KLUvin scale", "clew-origin", "H4sIA"])
def test_words_that_begin_like_packed_data_stay(text: str) -> None:
    assert redact(text) == text


def spelled_with_spaces(line: bytes) -> bytes:
    return json.dumps(json.loads(line)).encode() + b"\n"


def data_first(line: bytes) -> bytes:
    return json.dumps(dict(reversed(json.loads(line).items()))).encode() + b"\n"


def escaped(line: bytes) -> bytes:
    return line.replace(b"clew-origin", b"clew\\u002dorigin")


def cut_off(line: bytes) -> bytes:
    return spelled_with_spaces(line)[:-20] + b"\n"


@pytest.mark.parametrize("spell", [bytes, spelled_with_spaces, data_first, escaped, cut_off])
@pytest.mark.parametrize("packed", [PACKERS["zstd"](TEXT), NOISE])
def test_a_record_of_an_original_goes_however_it_is_spelled(spell: Callable[[bytes], bytes], packed: bytes) -> None:
    encoded = base64.b64encode(packed).decode()
    line = spell(json.dumps({"type": "clew-origin", "data": encoded}, separators=(",", ":")).encode() + b"\n")
    file = b'{"type":"user"}\n' + line + b'{"type":"assistant"}\n'
    for masked in (
        b"".join(mask_file(partial(BytesIO, file), redactor())),
        b"".join(masks([line], redactor())),
        b"".join(mask_file(partial(BytesIO, line), redactor())),
        json.dumps(redactor().value({"raw": line.decode()})).encode(),
    ):
        assert encoded[100:160].encode() not in masked


SESSION = "1a12b43d-8dac-417e-8742-000000000001"


@pytest.fixture(params=["gemini", "codex", "sage-agent"])
def converted(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A home with a session that was converted, and brings its original along."""
    home, other = tmp_path / "home", tmp_path / "other"
    path = home / ".claude" / "projects" / "-x" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    record = {
        "parentUuid": None,
        "isSidechain": False,
        "cwd": "/x",
        "sessionId": SESSION,
        "version": "2.0.1",
        "type": "user",
        "uuid": "1a12b43d-8dac-417e-8742-000000000002",
        "timestamp": "2026-10-20T10:00:00.000Z",
        "message": {"role": "user", "content": f"token {TOKEN}"},
    }
    path.write_text(json.dumps(record) + "\n")
    source = next(each.source for each in in_homes([Host.at(home)], ["claude-code"]))
    prepare(registry.get("claude-code"), source, request.param).write(other, allow_loss=True)
    return other


@pytest.mark.parametrize("respelled", [False, True])
@pytest.mark.parametrize("form", ["json", "ndjson", "html"])
def test_a_masked_export_of_a_converted_session_holds_no_original(
    converted: Path, tmp_path: Path, form: str, respelled: bool
) -> None:
    for file in converted.rglob("*.jsonl*"):
        if respelled:
            file.write_bytes(b"".join(map(spelled_with_spaces, file.read_bytes().splitlines())))
    out = tmp_path / "out"
    carry = ["--carry"] if form == "html" else []
    done = clew("--home", converted, "export", "--to", form, *carry, "-o", out, "--redact", "secrets")
    assert done.code == 0, done.err
    written = b"".join(file.read_bytes() for file in [out, *out.rglob("*")] if file.is_file())
    assert written
    if form == "html":
        # A page packs the document that it carries.
        page = next(file for file in [out, *out.rglob("*.html")] if file.is_file())
        done = clew("import", page, "--stdout")
        assert done.code == 0, done.err
        written = done.out.encode()
    assert b"KLUv" not in written
    assert TOKEN.encode() not in written


@pytest.mark.parametrize(
    "spell",
    [
        lambda record: json.dumps(record, indent=1),
        lambda record: json.dumps(record, sort_keys=True)[:-1],
        lambda record: json.dumps(record).replace("clew-origin", "clew\\u002dorigin"),
    ],
    ids=["over lines", "cut off", "escaped"],
)
@pytest.mark.parametrize("begin", [b"", b"\xef\xbb\xbf", b'{"x\n'], ids=["", "mark", "damaged"])
def test_no_line_of_a_long_original_is_left(begin: bytes, spell: Callable[[dict[str, str]], str]) -> None:
    """Only the first line of an original begins as packed data does."""
    packed = base64.b64encode(zstandard.ZstdCompressor().compress(random.Random(9).randbytes(8700))).decode()
    pieces = [packed[at : at + 4000] for at in range(0, len(packed), 4000)]
    lines = [spell({"type": "clew-origin", "data": piece}).encode() for piece in pieces]
    content = begin + b'{"type":"user"}\n' + b"\n".join(lines) + b"\n"
    masked = b"".join(mask_file(lambda: BytesIO(content), Redactor(MaskSettings("secrets", Marker()))))
    assert not [piece for piece in pieces if piece[100:200].encode() in masked]
