"""The pages people read, and the fenced blocks in them.

`console` holds commands behind `$ ` and what they print; `python` is run, and a `text` block right behind it is what
it prints; a block with a title is a file of that name. `sh` is for commands that no test runs.
"""

import re
import unicodedata
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GENERATED = {"reference/json.md", "reference/problems.md", "reference/tables.md", "development/seeds.md"}
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
    return [page for page in pages_with_generated() if not is_generated(page)]


def is_generated(page: Path) -> bool:
    """Whether scripts/docs.py writes the page."""
    name = page.relative_to(DOCS).as_posix() if page.is_relative_to(DOCS) else ""
    return name in GENERATED or name.startswith("reference/commands/")


def pages_with_generated() -> list[Path]:
    """Every page of the site, and those in the root of the project."""
    return [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def fences(text: str) -> list[Fence]:
    """The blocks of a page, in order."""
    return [Fence(match[1], match[2] or "", match[3], match.start(3), match.end(3)) for match in _FENCE.finditer(text)]


def line_of(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def without_code(text: str) -> str:
    """The page without fenced blocks and code in lines."""
    return re.sub(r"`[^`\n]+`", "`code`", _FENCE.sub("", text))


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as Python-Markdown spells them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", _FENCE.sub("", text), re.MULTILINE):
        plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode("ascii")
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
        while slug in found:
            slug = f"{slug}_1"
        found.add(slug)
    return found
