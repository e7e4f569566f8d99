"""Files as programs wrote them: what holds nothing stays byte for byte, whatever the bytes are."""

from __future__ import annotations

import json
from functools import partial
from io import BytesIO

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from clew.redact.document_stamp import stamp_of, stamped
from clew.redact.masks import Marker
from clew.redact.native_files import mask_file, mask_text_file, masks
from clew.redact.redactor import MaskSettings, Redactor
from tests.redact.planted import Planter

TOKEN = Planter("native").github()


def masked(content: bytes, profile: str = "secrets", path: str | None = None) -> bytes:
    redactor = Redactor(MaskSettings(profile, Marker(b"key")))
    return b"".join(mask_file(partial(BytesIO, content), redactor, path))


@given(st.binary(max_size=400))
def test_any_bytes_without_a_finding_stay(content: bytes) -> None:
    # A packed original goes, wherever a line begins with one.
    assume(b"clew-origin" not in content)
    assert masked(content) == content


@given(st.binary(max_size=100), st.binary(max_size=100))
def test_no_bytes_around_a_value_save_it(before: bytes, behind: bytes) -> None:
    content = before + b"\n" + TOKEN.encode() + b"\n" + behind
    assert TOKEN.encode() not in masked(content)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_lines_without_a_finding_stay_byte_for_byte(end: bytes) -> None:
    lines = [
        b'{"a":1, "b" :  2.50e3,"c":"\\u00e9\\/"}',
        b"",
        b'\x00\x00\x00{"nul": 1}',
        b'{"dup":1,"dup":2}',
        b'{"torn": "x',
        b"\xff\xfe not utf-8",
        b'{"key": "' + TOKEN.encode() + b'", "n": 1.0}',
    ]
    found = masked(end.join(lines) + end).split(end)
    assert found[:6] == lines[:6]
    assert found[6].startswith(b'{"key": "[REDACTED:')
    assert found[6].endswith(b'", "n": 1.0}')


def test_a_large_document_is_one_value() -> None:
    text = json.dumps({"messages": [{"x": TOKEN, "y": [1.0, None]}], "a": 1}, indent=2)
    found = masked(text.encode()).decode()
    assert TOKEN not in found
    assert found.count("\n") == text.count("\n")
    assert list(json.loads(found)) == ["messages", "a"]


def test_what_is_found_at_the_end_is_masked_at_the_beginning() -> None:
    word = Planter("late").password()
    lines = [json.dumps({"say": f"it was {word}."}), json.dumps({"env": f"DB_PASSWORD={word}"})]
    assert word.encode() not in masked("\n".join(lines).encode())


def test_a_file_that_grows_meanwhile_is_masked_to_its_end() -> None:
    first, later = b'{"a": "clean"}\n', b'{"b": "' + TOKEN.encode() + b'"}\n'
    contents = iter([first, first + later])
    redactor = Redactor(MaskSettings("secrets", Marker(b"key")))
    assert TOKEN.encode() not in b"".join(mask_file(lambda: BytesIO(next(contents)), redactor))


DOCUMENT = {"schema_version": "1.1", "agent": "codex", "session": {}, "messages": [{"text": TOKEN}]}


@pytest.mark.parametrize(
    "extensions",
    [None, {}, {"codex": {"x": 1}}, {"clew": {"redacted": {"masked": 3}}, "codex": {}}, {"clew": {"y": 2}}],
)
def test_a_document_gets_the_stamp(extensions: dict[str, object] | None) -> None:
    document = DOCUMENT | ({} if extensions is None else {"extensions": extensions})
    text = json.dumps(document, separators=(",", ":"))
    found = json.loads(masked(text.encode()))
    stamp = stamp_of(found["extensions"])
    assert stamp["profile"] == "secrets"
    assert stamp["masked"] == 1
    for name, value in (extensions or {}).items():
        assert name == "clew" or found["extensions"][name] == value


@pytest.mark.parametrize("text", [b"", b"plain", b'{"schema_version":', b'{"schema_version":1,"x":]}'])
def test_what_is_no_document_gets_none(text: bytes) -> None:
    assert stamped(text, {"masked": 1}) == text


_NAMES = [
    "/home/nora/x",
    "C:\\Users\\nora\\x",
    "nora@box:~$ ls",
    "10.1.2.3",
    "nas.local",
    "-home-nora-app-",
    "/home/user/",
]


@pytest.mark.parametrize("before", ["", "x" * 500, "\n", "\t", "\b", "\\", "\\n", "\u00e9", '"', "a\\\\", "日" * 200])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_what_names_the_machine_goes_alike_the_quick_way_and_the_close_one(before: str, depth: int) -> None:
    lines = []
    for name in _NAMES:
        value = {"text": f"{before}{name} and {before}{name}{before}"}
        for _ in range(depth):
            value = {"text": json.dumps(value)}
        lines += [json.dumps(value).encode() + b"\n", json.dumps(value, ensure_ascii=False).encode() + b"\n"]
    whole = b"".join(mask_file(partial(BytesIO, b"".join(lines)), Redactor(MaskSettings("paths", Marker()))))
    quick = whole.splitlines(keepends=True)
    close = masks(lines, Redactor(MaskSettings("paths", Marker())))
    assert quick == close
    assert [json.loads(line) for line in quick]
    assert sum(old != new for old, new in zip(lines, quick, strict=True)) >= len(lines) - 8


@pytest.mark.parametrize("before", ["", "{}\n"], ids=["a text", "a line among records"])
def test_the_user_in_a_home_path_of_plain_text_is_masked(before: str) -> None:
    text = before + "see C:\\Users\\nora\\src, D:\\\\Users\\\\nora and /home/nora\n"
    masked = b"".join(mask_file(partial(BytesIO, text.encode()), Redactor(MaskSettings("paths", Marker()))))
    assert masked.decode() == text.replace("nora", "[REDACTED]")


def test_users_in_a_long_list_of_one_document_are_masked() -> None:
    rows = [{"n": n, "path": f"/home/nora/src/{n}", "words": "nothing to see here"} for n in range(400)]
    text = json.dumps({"rows": rows, "env": f"DB_PASSWORD={Planter('rows').password()}"}, indent=1)
    masked = b"".join(mask_file(partial(BytesIO, text.encode()), Redactor(MaskSettings("all", Marker()))))
    assert b"nora" not in masked
    assert json.loads(masked)["rows"][7] == rows[7] | {"path": "/home/[REDACTED]/src/7"}


@pytest.mark.parametrize(
    "form", ['{{"a": "{}"}}\n', '{{"note": "calm"}}\n{{"a": "{}"}}\n', "a text with {} in it\n", '{{\n "a": "{}"\n}}\n']
)
def test_a_file_that_was_rewritten_after_it_was_learned_is_masked(form: str) -> None:
    calm, new = form.format("nothing here" + " " * (len(TOKEN) - 12)).encode(), form.format(TOKEN).encode()
    assert len(calm) == len(new)
    versions = iter([calm, new])
    redactor = Redactor(MaskSettings("secrets", Marker(b"key")))
    found = b"".join(mask_file(lambda: BytesIO(next(versions)), redactor))
    assert TOKEN.encode() not in found
    assert b"[REDACTED" in found


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("lines", [1, 3000])
def test_files_with_wide_characters_are_masked_in_their_encoding(encoding: str, lines: int) -> None:
    token = Planter(encoding).github()
    text = "".join(f"line {number}, grüße\n" for number in range(lines)) + f"token {token}\n"
    raw = text.encode(encoding)
    masked = b"".join(mask_text_file(partial(BytesIO, raw), Redactor(MaskSettings("secrets", Marker()))))
    assert masked.decode(encoding) == text.replace(token, "[REDACTED]")
    cut = b"".join(mask_text_file(partial(BytesIO, raw + b"\n"), Redactor(MaskSettings("secrets", Marker()))))
    assert token.encode(encoding)[4:] not in cut
