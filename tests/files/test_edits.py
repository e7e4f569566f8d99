"""Edits as functions of content, spellings of paths, and commands that only read."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.edits import Replacement, changing, parse_hunks, patched, replacing, with_line_endings_of
from clew.agents.file_evidence import ABSENT, FileContent, absolute, as_bytes, as_text
from clew.agents.read_only_commands import is_read_only_command
from clew.file_history.diffs import unified_diff

LINES = st.lists(st.sampled_from(["a", "b", "", "-", "+x", "@@ -1 +1 @@", "\\ No"]), max_size=12)


@given(LINES, LINES, st.booleans(), st.booleans())
def test_a_diff_makes_the_new_text_of_the_old(old: list[str], new: list[str], ends: bool, ends_too: bool) -> None:
    before = "\n".join(old) + ("\n" if ends and old else "")
    after = "\n".join(new) + ("\n" if ends_too and new else "")
    diff = unified_diff("x", FileContent(before.encode(), True), FileContent(after.encode(), True))
    if not diff:
        assert before == after
        return
    hunks = parse_hunks(diff.split("\n", 2)[2])
    assert hunks is not None
    assert patched(before, hunks) == after


def test_hunks_must_fit() -> None:
    hunks = parse_hunks("@@ -1,2 +1,2 @@\n a\n-b\n+B\n")
    assert hunks is not None
    assert patched("a\nb\n", hunks) == "a\nB\n"
    assert patched("a\nc\n", hunks) is None
    assert patched("x\na\nb\n", hunks) is None
    assert changing(str.upper)(FileContent(b"a\r\n", True)) == FileContent(b"A\r\n", True)
    assert changing(str.upper)(None) is None
    assert changing(str.upper)(ABSENT) is None
    assert parse_hunks("nothing") is None
    assert parse_hunks("@@ -1 +1 @@\n!a\n") is None
    assert parse_hunks(f"@@ -1,{'9' * 5000} +1 @@\n-a\n+b\n") is None


def test_a_replacement_must_be_the_only_one() -> None:
    base = FileContent(b"a a b", True)
    assert replacing([Replacement("b", "c")])(base) == FileContent(b"a a c", True)
    assert replacing([Replacement("a", "c")])(base) is None
    assert replacing([Replacement("a", "c", True)])(base) == FileContent(b"c c b", True)
    assert replacing([Replacement("x", "y")])(base) is None
    assert replacing([Replacement("b", "c")])(None) is None


@pytest.mark.parametrize(
    ("base", "text", "expected"),
    [
        (b"a\n", "x\ny\n", FileContent(b"x\ny\n", True)),
        (b"a\r\n", "x\ny\n", FileContent(b"x\r\ny\r\n", True)),
        (b"\xef\xbb\xbfa\n", "x\n", FileContent(b"\xef\xbb\xbfx\n", True)),
        (b"a\r\nb\n", "x\n", FileContent(b"x\n", False)),
        (b"a\rb\n", "x\n", FileContent(b"x\n", False)),
        (b"\xff\xfea\0", "x\n", FileContent(b"x\n", False)),
    ],
)
def test_lines_end_as_those_of_the_file(base: bytes, text: str, expected: FileContent) -> None:
    assert with_line_endings_of(text, FileContent(base, True)) == expected
    assert with_line_endings_of(text, FileContent(base, False)) == as_text(text)


def test_text_that_was_lost_is_no_content() -> None:
    assert as_text("caf\ufffd") is None and as_bytes("caf\ufffd") is None
    assert as_text("\ud800") is None and as_bytes("\ud800") is None
    assert as_text("\ufeffa\r\n") == FileContent(b"a\n", False)


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [
        ("/a/b", None, "/a/b"),
        ("/a/../b//c/.", "/x", "/b/c"),
        ("b", "/a", "/a/b"),
        ("../b", "/a/c", "/a/b"),
        ("b", None, "b"),
        ("//a", None, "/a"),
        ("~/b", "/a", "~/b"),
        ("C:\\a\\b", None, "C:/a/b"),
        ("c:/a/../b", None, "C:/b"),
        ("b\\c", "C:\\a", "C:/a/b/c"),
        ("\\\\host\\share\\x", None, "//host/share/x"),
        ("file:///a/b%20c", None, "/a/b c"),
        ("file:///C:/a", None, "C:/a"),
        ("file://localhost/a", None, "/a"),
        ("file://host/share/a%20b", "/w", "//host/share/a b"),
        ("\\\\host\\share\\a b", "/w", "//host/share/a b"),
        ("b", "file:///a", "/a/b"),
    ],
)
def test_one_spelling_for_a_path(path: str, folder: str | None, expected: str) -> None:
    assert absolute(path, folder) == expected


READS = (
    "cat a", "ls -la | head -5", "git status", "git -C x log --oneline", "cd x && git diff", "grep -n 'a$b' x",
    'grep "foo\\|bar(" x', "sed -n '1,20p' f", "find . -name '*.py'", "ls *.py", "wc -l a; head b || tail c",
    "cat a 2>/dev/null", "ls no 2>&1", "rg foo src",
)  # fmt: skip
WRITES = (
    "", "rm a", "echo a > b", "cat a >> b", "cat a | tee b", "cat a && rm b", "cat a; rm b", "cat a & rm b", "cat a &",
    "cat $(rm a)", "cat `rm a`", "cat <(rm a)", "cat <<E\nx\nE", "X=1 cat a", "sed -i s/a/b/ f", "sed -n '1w b' f",
    "sed -n 1p f -i", "find . -delete", "find . -exec rm {} +", "find *", "sort -o a b", "sort -uo a b",
    "git checkout .", "git diff --output=a", "git grep -Oless x", "rg --pre sh x", "tree -o a", "python x.py",
    "cat a\nrm b", "cat \"$(rm a)\"", "cat \\' $(rm x) \\'", "cat 'a' \"b`rm x`\"", "ls # x\nrm y",
    "(rm a)", "{ rm a; }", "make", "tee a", "date -s 1", "env rm a", "xargs rm", "cat 'a", "git",
    "date --set=1", "file -C -m x",
)  # fmt: skip


@pytest.mark.parametrize("command", READS)
def test_commands_that_only_read(command: str) -> None:
    assert is_read_only_command(command)


@pytest.mark.parametrize("command", WRITES)
def test_commands_that_may_write(command: str) -> None:
    assert not is_read_only_command(command)


def test_diffs_say_when_a_file_came_or_went() -> None:
    one = FileContent(b"a\n", True)
    assert unified_diff("x", ABSENT, one).startswith("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n")
    assert unified_diff("x", one, ABSENT).startswith("--- a/x\n+++ /dev/null\n")
    assert unified_diff("x", ABSENT, FileContent(b"", True)) == "--- /dev/null\n+++ b/x\n"
    assert unified_diff("x", one, one) == "" and unified_diff("x", ABSENT, ABSENT) == ""
    assert unified_diff("x", one, FileContent(b"\0", True)) == "Binary files a/x and b/x differ\n"
    assert list(difflib.unified_diff([], [])) == []
