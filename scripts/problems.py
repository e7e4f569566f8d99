"""Write docs/reference/problems.md, the list of all problem codes, from clew.model.codes."""

from pathlib import Path

from clew.model.codes import CODES, Code

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "problems.md"

INTRODUCTION = """\
# Problems

What clew finds in a source that does not stop it from reading: each finding has one of these codes, which stay
the same from version to version. An *error* makes `clew validate` exit with 1, a *warning* deserves a look, and
a *note* is harmless. This page is generated from `src/clew/model/codes.py`: run `make docs` after changing it.

| code | severity | meaning | hint |
| --- | --- | --- | --- |
"""


def render_page() -> str:
    """The whole of docs/reference/problems.md."""
    return INTRODUCTION + "".join(f"{_row(name, code)}\n" for name, code in sorted(CODES.items()))


def write_page() -> None:
    """Write docs/reference/problems.md again."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(render_page(), encoding="utf-8", newline="\n")


def _row(name: str, code: Code) -> str:
    cells = (f"`{name}`", code.severity, code.meaning, code.hint)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


if __name__ == "__main__":
    write_page()
