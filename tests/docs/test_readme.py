"""Every example in the README and the pages does what the page says."""

import re
from pathlib import Path

import pytest

import clew
from tests.docs.examples import STATUS, Shell, matches, page_shell, printed_by, run_python, steps
from tests.docs.pages import KINDS, ROOT, Fence, fences, line_of, name_of, pages


def has_examples(page: Path) -> bool:
    return any(block.kind in ("console", "python") for block in fences(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", [page for page in pages() if has_examples(page)], ids=name_of)
def test_examples_print_what_the_page_says(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = fences(text)
    names: dict[str, object] = {}
    with page_shell() as shell:
        for at, block in enumerate(blocks):
            where = f"{name_of(page)}:{line_of(text, block.start)}"
            if block.kind == "console":
                check_commands(block, where, shell)
            elif block.kind == "python" and not block.title:
                actual = run_python(block.text, where, names, shell)
                printed = printed_by(blocks, at, text)
                expected = printed.text if printed is not None else ""
                assert matches(expected, actual), f"{where}\n--- the page\n{expected}--- now\n{actual}"


def check_commands(block: Fence, where: str, shell: Shell) -> None:
    """Run the commands of a `console` block, and compare what they print."""
    failed = False
    for step in steps(block.text):
        assert step.command == STATUS or not failed, f"{step.command}: say `{STATUS}` behind what fails"
        actual = shell.run(step.command)
        failed = shell.status != 0 and step.command != STATUS
        assert matches(step.output, actual), f"{where}: $ {step.command}\n--- the page\n{step.output}--- now\n{actual}"
    assert not failed, f"{where}: say `{STATUS}` behind what fails"


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


def test_the_examples_of_the_package_run() -> None:
    assert clew.__doc__ is not None
    code = "\n".join(line.removeprefix("    ") for line in clew.__doc__.splitlines() if line.startswith("    "))
    with page_shell() as shell:
        said = run_python(code, "clew.__doc__", {}, shell)
    assert "Remove the jump at midnight" in said
