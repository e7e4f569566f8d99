"""The small projects that the clients work in."""

from __future__ import annotations

import struct
import subprocess
import zlib
from pathlib import Path

BELL = "def ring():\n    return 'dong'\n\n\nprint(ring())\n"
HORN = "def blow():\n    return 'toot'\n"
FILES_TO_CHANGE = {
    "bell.py": BELL.encode(),
    "crlf.txt": b"one\r\ntwo\r\nthree\r\n",
    "mark.txt": b"\xef\xbb\xbfone\ntwo\n",
    "open.txt": b"one\ntwo",
    "mixed.txt": b"one\r\ntwo\nthree\r\n",
}
"""The files of a `FileChanges` session: with each line end, a byte order mark, and no line end at the end."""


def build_project(project: Path) -> None:
    """Create a project with a bell and a flag under git."""
    project.mkdir(parents=True)
    (project / "bell.py").write_text(BELL, encoding="utf-8")
    (project / "flag.png").write_bytes(flag_png())
    git = ["git", "-C", str(project), "-c", "user.name=lab", "-c", "user.email=lab@example.org"]
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Harbour"]):
        subprocess.run([*git, *command], check=True)


def flag_png() -> bytes:
    """An image of sixteen by sixteen red points."""
    rows = (b"\0" + b"\xc8\x10\x2e" * 16) * 16
    head = struct.pack(">IIBBBBB", 16, 16, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )
