"""The table of requirements and their tests: docs/development/seeds.md.

Marks are read from the syntax tree of the test files, so that no test has to run or even be importable.
"""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
ITEMS = TESTS / "seed_items.toml"
PAGE = ROOT / "docs" / "development" / "seeds.md"

SECTIONS = {
    "S0": "sage-emacs",
    "S1": "Sage Agent",
    "S2": "The unified document",
    "S3": "Claude Code",
    "S4": "Sessions",
    "SX": "Where the descriptions disagree",
}

# The page is left out of search: its names of tests match nearly every query.
INTRODUCTION = """\
---
search:
  exclude: true
---

# Requirements and their tests

clew started from five descriptions of session formats. This page lists what they require, and the tests of each
requirement. It is generated from `tests/seed_items.toml` and the `seed` marks of the tests: run `make docs` after
changing either.
"""

Coverage = dict[str, list[str]]


class Item(NamedTuple):
    """One requirement."""

    id: str
    text: str


def load_items(path: Path = ITEMS) -> list[Item]:
    """Read the items, in order."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return [Item(key, entry["text"]) for key, entry in table["items"].items()]


def collect_marks(tests: Path = TESTS) -> Coverage:
    """Map each marked id to the tests that carry it, as `folder/test_module.py::test_name`."""
    coverage: Coverage = {}
    for path in sorted(tests.rglob("test_*.py")):
        if "fixtures" in path.relative_to(tests).parts:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        for name, ids in _marks_of_module(tree):
            for id in ids:
                named = f"{path.relative_to(tests).as_posix()}::{name}"
                if named not in coverage.setdefault(id, []):
                    coverage[id].append(named)
    return coverage


def uncovered(items: list[Item], coverage: Coverage) -> list[Item]:
    """The items that have no test."""
    return [item for item in items if item.id not in coverage]


def unknown_ids(items: list[Item], coverage: Coverage) -> list[str]:
    """The marked ids that no item has."""
    return sorted(coverage.keys() - {item.id for item in items})


def render_page(items: list[Item], coverage: Coverage) -> str:
    """The whole of docs/development/seeds.md."""
    covered = len(items) - len(uncovered(items, coverage))
    parts = [INTRODUCTION, f"{covered} of {len(items)} requirements have tests.\n"]
    for prefix, title in SECTIONS.items():
        rows = [_row(item, coverage) for item in items if item.id.startswith(f"{prefix}-")]
        head = [f"## {title}\n", "| id | requirement | tests |", "| --- | --- | --- |"]
        parts.append("\n".join([*head, *rows]) + "\n")
    return "\n".join(parts)


def write_page() -> None:
    """Write docs/development/seeds.md."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(render_page(load_items(), collect_marks()), encoding="utf-8", newline="\n")


def _row(item: Item, coverage: Coverage) -> str:
    cells = [f"`{test}`" for test in coverage.get(item.id, [])]
    return f"| {item.id} | {item.text.replace('|', chr(92) + '|')} | {'<br>'.join(cells) or '**none**'} |"


def _marks_of_module(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    of_module: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(_is_named(target, "pytestmark") for target in node.targets):
            of_module += _ids_in(node.value)
    yield from _marks_of_body(tree.body, "", of_module)


def _marks_of_body(body: list[ast.stmt], prefix: str, inherited: list[str]) -> Iterator[tuple[str, list[str]]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield prefix + node.name, inherited + _ids_of_decorators(node.decorator_list)
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            ids = inherited + _ids_of_decorators(node.decorator_list)
            # A class may inherit its tests, so the class itself carries its marks.
            yield prefix + node.name, ids
            yield from _marks_of_body(node.body, f"{prefix}{node.name}::", [])


def _ids_of_decorators(decorators: list[ast.expr]) -> list[str]:
    return [id for decorator in decorators for id in _ids_in(decorator)]


def _ids_in(tree: ast.expr) -> list[str]:
    """The ids of every `pytest.mark.seed(...)` within, also where only one parametrised case has it."""
    ids: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "seed":
            if not _is_named(node.func.value, "mark"):
                continue
            for argument in node.args:
                if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                    raise ValueError(f"line {argument.lineno}: the ids of a seed mark are plain strings")
                ids.append(argument.value)
    return ids


def _is_named(node: ast.expr, name: str) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == name
    return isinstance(node, ast.Name) and node.id == name


if __name__ == "__main__":
    write_page()
