"""Files and functions stay small enough to read, and modules have real names."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "clew"
MODULES = sorted(PACKAGE.rglob("*.py"))

FILE_LINES = 500
FUNCTION_LINES = 60
VAGUE = {"utils", "util", "helpers", "helper", "manager", "data", "info"}


def name_of(module: Path) -> str:
    return module.relative_to(PACKAGE).as_posix()


def test_there_are_modules() -> None:
    assert MODULES


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_file_is_short(module: Path) -> None:
    lines = len(module.read_text(encoding="utf-8").splitlines())
    assert lines <= FILE_LINES, f"{name_of(module)} has {lines} lines; at most {FILE_LINES}"


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_functions_are_short(module: Path) -> None:
    long = []
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                long.append(f"{name_of(module)}:{node.lineno} {node.name} has {lines} lines")
    assert not long, f"at most {FUNCTION_LINES} lines:\n" + "\n".join(long)


def test_module_names_say_something() -> None:
    vague = [
        name_of(module)
        for module in MODULES
        if VAGUE & {part.strip("_") for part in module.relative_to(PACKAGE).with_suffix("").parts}
    ]
    assert not vague
