"""Ignore patterns mean what they mean in a `.gitignore` file at the root: compared with `git check-ignore`."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from clew.io.ignore_patterns import IgnorePatterns

FILES = [
    "a.log", "keep.log", "plain", "top/x", "sub/top/x", "data/raw/one", "data/raw/deep/two", "sub/data/raw/three",
    "build/out.o", "sub/build/out.o", "sub/plain/inner", "docs/a/b/c.txt", "docs/c.txt", "x.o", "sub/x.oo", "#note",
    "with space", "sp ", "b[1]", "ärger", "sub/.hidden", "UPPER.LOG",
]  # fmt: skip

LISTS = [
    ["plain"], ["*.log"], ["*.log", "!keep.log"], ["!keep.log", "*.log"], ["/plain"], ["/top/x"], ["top/x"],
    ["data/raw"], ["data/raw/"], ["data/*"], ["data/*", "!data/raw"], ["data", "!data/raw/one"], ["**/raw"],
    ["docs/**/c.txt"], ["docs/**"], ["**"], ["build/"], ["sub/build"], ["x.?"], ["[ab].log"], ["\\#note"], ["#note"],
    ["with space"], ["sp\\ "], ["sp "], ["b\\[1\\]"], ["b[1]"], ["ä*"], [".*"],
    ["", "   "], ["sub/*/x"], ["/*", "!/sub"],
    ["!", "*.o"], ["***"],
]  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with all files."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    root = tmp_path_factory.mktemp("tree")
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")
    subprocess.run(["git", "init", "-q", root], check=True)
    return root


def ignored_by_git(root: Path, patterns: list[str]) -> set[str]:
    (root / ".gitignore").write_text("".join(f"{pattern}\n" for pattern in patterns))
    command = ["git", "-C", str(root), "-c", "core.excludesFile=/dev/null", "-c", "core.ignoreCase=false"]
    done = subprocess.run(
        [*command, "check-ignore", "-z", "--stdin"], input="\0".join(FILES).encode(), capture_output=True
    )
    return set(done.stdout.decode().split("\0")[:-1])


def ignored_by_clew(patterns: list[str]) -> set[str]:
    ignored = IgnorePatterns(patterns)
    return {name for name in FILES if ignored.hides(name)}


@pytest.mark.parametrize("patterns", LISTS, ids=" ".join)
def test_a_list_means_what_it_means_to_git(tree: Path, patterns: list[str]) -> None:
    assert ignored_by_clew(patterns) == ignored_by_git(tree, patterns)


@pytest.mark.slow
def test_random_lists_mean_what_they_mean_to_git(tree: Path) -> None:
    chance = random.Random(5)
    lines = [line for patterns in LISTS for line in patterns if line.strip() and not line.startswith("!")]
    lines += ["!keep.log", "!*.o", "!c.txt", "!/top/x"]
    for _ in range(100):
        patterns = chance.sample(lines, 4)
        assert ignored_by_clew(patterns) == ignored_by_git(tree, patterns), patterns


@pytest.mark.parametrize("pattern", ["!", "/", "[", "a/**b", "\\", "", "#", "a[!", "(", "a{2", "x" * 5000])
def test_odd_patterns_stop_nothing(pattern: str) -> None:
    assert not IgnorePatterns([pattern]).hides("work/main.py")
    assert IgnorePatterns([pattern, "*.py"]).hides("work/main.py")


def test_what_is_never_scanned_cannot_be_brought_back() -> None:
    ignored = IgnorePatterns(["!.sage", "!.git", "!.clew-*", "!*"])
    for path in (".sage/sessions/s/messages.jsonl", "sub/.git/config", "a/.clew-1.tmp"):
        assert ignored.hides(path)


@pytest.mark.parametrize("name", [b"caf\xe9.log", b"\xff/x.log", b"line\nbreak.log"])
def test_names_that_are_not_text(name: bytes) -> None:
    assert IgnorePatterns(["*.log"]).hides(os.fsdecode(name))
    assert not IgnorePatterns(["*.txt"]).hides(os.fsdecode(name))
