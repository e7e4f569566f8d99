"""Only what is the base64 of an image passes unread, whatever a key or a media type says."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from clew.redact import Marker
from clew.redact.native_files import mask_file
from clew.redact.redactor import MaskSettings, Redactor
from tests.cli.running import clew
from tests.redact.planted import Planter

PLANT = Planter("images")
KEY = PLANT.github()


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def png() -> str:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 40, 40, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(range(121)) * 40, 0)
    whole = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return base64.b64encode(whole).decode()


TEXTS: list[Any] = [
    {"source": {"type": "base64", "media_type": "image/png", "data": f"use {KEY} now"}},
    {"source": {"type": "base64", "media_type": "image/png", "data": KEY}},
    {"source": {"type": "base64", "media_type": "image/png", "data": encoded(f"DB_PASSWORD={KEY}")}},
    {"source": {"type": "base64", "media_type": "image/svg+xml", "data": encoded(f"<svg a='DB_PASSWORD={KEY}'/>")}},
    {"source": {"type": "base64", "media_type": "application/pdf", "data": encoded(f"%PDF DB_PASSWORD={KEY}")}},
    {"source": {"type": "text", "media_type": "text/plain", "data": f"use {KEY} now"}},
    {"mimeType": "audio/wav", "data": KEY},
    {"mimeType": "image/png", "image": f"{png()} {KEY}"},
    {"mimeType": "image/png", "image": f"{png()}\n{KEY}"},
    {"image_url": f"https://img.lindwerk.de/x.png?token={KEY}"},
    {"image_url": {"url": f"https://img.lindwerk.de/x.png?token={KEY}"}},
    {"image_url": f"data:text/plain,token={KEY}"},
    {"image_url": f"data:text/plain;base64,{encoded(f'DB_PASSWORD={KEY}')}"},
    {"image_url": f"data:image/svg+xml,<svg token='{KEY}'/>"},
    {"image_url": f"data:image/svg+xml;base64,{encoded(f'<svg DB_PASSWORD={KEY}>')}"},
    {"image_url": f"data:image/png;base64,{KEY}"},
    {"image_url": {"url": f"data:image/png;base64,{encoded(f'DB_PASSWORD={KEY}')}"}},
]


def masked_line(value: Any) -> str:
    content = json.dumps(value).encode() + b"\n"
    return b"".join(mask_file(partial(BytesIO, content), Redactor(MaskSettings("secrets", Marker())))).decode()


@pytest.mark.parametrize("value", TEXTS)
def test_text_in_the_place_of_an_image_is_masked(value: Any) -> None:
    once = json.dumps(Redactor(MaskSettings("secrets", Marker())).learn_and_mask(value))
    for masked in (once, masked_line(value)):
        assert "[REDACTED]" in masked
        assert KEY not in masked
        assert encoded(f"DB_PASSWORD={KEY}")[12:60] not in masked


@pytest.mark.parametrize("profile", ["secrets", "all"])
def test_an_image_stays(profile: str) -> None:
    values: list[Any] = [
        {"source": {"type": "base64", "media_type": "image/png", "data": png()}, "text": f"use {KEY}"},
        {"image_url": f"data:image/png;base64,{png()}", "text": f"use {KEY}"},
        {"inlineData": {"mimeType": "image/png", "data": png()}, "text": f"use {KEY}"},
    ]
    for value in values:
        masked = Redactor(MaskSettings(profile, Marker())).learn_and_mask(value)
        assert masked == {**value, "text": "use [REDACTED]"}


def test_the_document_of_a_session_shows_no_text_of_an_image(tmp_path: Path) -> None:
    session = "0b0e2d8c-5a0f-4a5e-9d53-0d5a4f3c2b11"
    path = tmp_path / ".claude" / "projects" / "-srv-app" / f"{session}.jsonl"
    path.parent.mkdir(parents=True)
    last = None
    with path.open("w", encoding="utf-8") as out:
        for number, value in enumerate(TEXTS[:5]):
            uuid = f"{number:08x}-5a0f-4a5e-9d53-0d5a4f3c2b11"
            content = [{"type": "image", **value}]
            line = {"type": "user", "uuid": uuid, "parentUuid": last, "sessionId": session, "cwd": "/srv/app"}
            line |= {"timestamp": "2026-01-01T00:00:00Z", "version": "2.0.0"}
            out.write(json.dumps(line | {"message": {"role": "user", "content": content}}) + "\n")
            last = uuid
    for words in (("export", session, "--redact", "secrets"), ("show", session, "--json", "--redact", "secrets")):
        done = clew("--home", tmp_path, *words)
        assert done.code == 0, done.err
        assert KEY.encode() not in done.raw
        assert encoded(f"DB_PASSWORD={KEY}")[12:60].encode() not in done.raw
