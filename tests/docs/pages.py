"""The pages people read, and the fenced blocks in them.

`console` holds commands behind `$ ` and what they print; `python` is run, and a `text` block right behind it is what
it prints; a block with a title is a file of that name. `sh` is for commands that no test runs.
"""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
GENERATED = {"commands.md", "problems.md", "seeds.md"}
KINDS = {"console", "json", "jsonl", "python", "sh", "sql", "text", "toml"}

_FENCE = re.compile(r'^```(\S*)(?: title="([^"]*)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


class Fence(NamedTuple):
    """A fenced block, and the place of its text in the page."""

    kind: str
    title: str
    text: str
    start: int
    end: int


def pages() -> list[Path]:
    """Every page that is written by hand."""
    written = [path for path in sorted((ROOT / "docs").rglob("*.md")) if path.name not in GENERATED]
    return [*sorted(ROOT.glob("*.md")), *written]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def fences(text: str) -> list[Fence]:
    """The blocks of a page, in order."""
    return [Fence(match[1], match[2] or "", match[3], match.start(3), match.end(3)) for match in _FENCE.finditer(text)]


def line_of(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
