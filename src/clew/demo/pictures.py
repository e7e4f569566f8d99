"""A small PNG picture for prompts that show one."""

from __future__ import annotations

import struct
import zlib
from random import Random

BARS, HEIGHT = 12, 48
BAR, GAP = 0b0000_0011, 0b1111_1111
"""Eight pixels of one bit each: 6 black and 2 white ones, or 8 white ones."""


def bar_chart(random: Random) -> bytes:
    """A bar chart as a PNG file. It is not compressed, since versions of zlib compress differently."""
    heights = [random.randrange(6, HEIGHT - 4) for _ in range(BARS)]
    rows = (bytes([0, *(BAR if HEIGHT - y <= height else GAP for height in heights)]) for y in range(HEIGHT))
    header = struct.pack(">IIBBBBB", BARS * 8, HEIGHT, 1, 0, 0, 0, 0)
    chunks = (_chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(b"".join(rows), 0)), _chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
