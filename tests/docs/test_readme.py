"""Every example in the README and the pages does what the page says."""

import re
from pathlib import Path

import pytest

from tests.docs.examples import STATUS, demo_shell, matches, printed_by, run_python, steps
from tests.docs.pages import KINDS, ROOT, fences, line_of, name_of, pages


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_commands_print_what_the_page_says(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    with demo_shell(tmp_path) as shell:
        for block in fences(text):
            if block.kind != "console":
                continue
            failed = False
            for step in steps(block.text):
                assert step.command == STATUS or not failed, f"{step.command}: say `{STATUS}` behind what fails"
                actual = shell.run(step.command)
                failed = shell.status != 0 and step.command != STATUS
                where = f"{name_of(page)}:{line_of(text, block.start)}: $ {step.command}"
                assert matches(step.output, actual), f"{where}\n--- the page\n{step.output}--- now\n{actual}"
            assert not failed, f"{name_of(page)}: say `{STATUS}` behind what fails"


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_python_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = fences(text)
    names: dict[str, object] = {}
    with demo_shell(tmp_path) as shell:
        for at, block in enumerate(blocks):
            if block.kind == "python" and not block.title:
                where = f"{name_of(page)}:{line_of(text, block.start)}"
                actual = run_python(block.text, where, names, shell)
                expected = printed_by(blocks, at, text)
                said = expected.text if expected is not None else ""
                assert matches(said, actual), f"{where}\n--- the page\n{said}--- now\n{actual}"


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_blocks_are_of_a_known_kind(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    unknown = [line_of(text, block.start) for block in fences(text) if block.kind not in KINDS]
    assert not unknown, f"{name_of(page)}: lines {unknown}"
    assert len(re.findall("^```", text, re.MULTILINE)) == 2 * len(fences(text))


def test_make_knows_every_target_that_is_named() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    known = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    for page in pages():
        for block in fences(page.read_text(encoding="utf-8")):
            if block.kind == "sh":
                assert set(re.findall(r"^make ([a-z]+)", block.text, re.MULTILINE)) <= known, name_of(page)


def test_three_dots_stand_for_any_lines() -> None:
    assert matches("a\n...\nd\n", "a\nb\nc\nd\n")
    assert matches("a\n...\n", "a\n")
    assert not matches("a\n...\nd\n", "a\nb\n")
    assert not matches("a.c\n", "abc\n")
