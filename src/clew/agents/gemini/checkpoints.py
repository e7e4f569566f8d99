"""Gemini CLI's checkpoints: the whole project, committed to a repository of its own before a tool changes a file.

The repository is read by its objects alone. Its settings, hooks and links are never looked at: git is given a
repository made for the purpose, to which only the objects are lent.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from clew.agents.evidence import State, Touch, Whole, absolute
from clew.io.codec import NOT_JSON, dumps, loads
from clew.model.json import JSON

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_LIMIT = 64 << 20
_MOST = 2000
"""So many checkpoints of a project are looked into."""
_SECONDS = 60
_PATHS = ("file_path", "absolute_path", "path")


class Checkpoints:
    """The checkpoints of the project that a chat belongs to, by the call they were made for."""

    def __init__(self, chat: Path) -> None:
        project = next((up for up in chat.parents if up.name == "chats"), chat.parent).parent
        self._folder = project / "checkpoints"
        self._history = project.parent.parent / "history" / project.name
        self._root = _root(project) or _root(self._history)
        self._commits: dict[bytes, list[str]] | None = None
        self._touched: set[str] = set()

    def before(self, name: str, given: dict[str, JSON], index: int) -> Iterator[Touch]:
        """The files of the session so far as they were when a call was made, if there is a checkpoint for it."""
        path = next((given[word] for word in _PATHS if isinstance(given.get(word), str)), None)
        if path is None or self._root is None:
            return
        self._touched.add(absolute(path, None))
        commits = self._all().get(_call(name, given), [])
        if len(commits) != 1:
            # The same call twice: which is which is not recorded.
            return
        inside = {one: one[len(self._root) + 1 :] for one in self._touched if one.startswith(self._root + "/")}
        for one, state in zip(inside, self._read(commits[0], list(inside.values())), strict=False):
            if state is not None:
                yield Touch(one, "snapshot", index, index, "backup", state, state)

    def _all(self) -> dict[bytes, list[str]]:
        if self._commits is None:
            self._commits = {}
            for path in sorted(self._folder.glob("*.json"))[:_MOST] if self._folder.is_dir() else ():
                found = _checkpoint(path)
                if found is not None:
                    self._commits.setdefault(found[0], []).append(found[1])
        return self._commits

    def _read(self, commit: str, paths: list[str]) -> Iterator[State | None]:
        objects = self._history / ".git" / "objects"
        names = [f"{commit}:{path}" for path in paths]
        if not objects.is_dir() or any("\n" in name for name in names):
            return iter(())
        with tempfile.TemporaryDirectory() as folder:
            return iter(list(_objects(Path(folder), objects, commit, names)))


def _objects(own: Path, objects: Path, commit: str, names: list[str]) -> Iterator[State | None]:
    """The contents of files in a commit; None where it has no such file: git may have been told to ignore it."""
    for folder in ("objects", "refs"):
        (own / folder).mkdir()
    (own / "HEAD").write_text("ref: refs/heads/main\n")
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(own),
        "GIT_DIR": str(own),
        "GIT_OBJECT_DIRECTORY": str(objects),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
    command = ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "cat-file", "--batch"]
    asked = "".join(f"{name}\n" for name in (f"{commit}^{{commit}}", *names)).encode("utf-8", "surrogateescape")
    try:
        done = subprocess.run(command, input=asked, capture_output=True, env=environment, cwd=own, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired, UnicodeEncodeError):
        return
    answers = _answers(done.stdout, 1 + len(names))
    if next(answers, None) is not None:
        for kind, body in answers:
            yield Whole(body, True) if kind == "blob" else None


def _answers(output: bytes, count: int) -> Iterator[tuple[str, bytes]]:
    """The kind and the body of each object; a commit that is missing ends it."""
    at = 0
    for number in range(count):
        end = output.find(b"\n", at)
        if end < 0:
            return
        words = output[at:end].rsplit(b" ", 2)
        at = end + 1
        if words[-1] == b"missing" or len(words) < 3 or not words[2].isdigit():
            if not number:
                return
            yield "missing", b""
            continue
        size = int(words[2])
        if size > _LIMIT:
            return
        yield words[1].decode("ascii", "replace"), output[at : at + size]
        at += size + 1


def _checkpoint(path: Path) -> tuple[bytes, str] | None:
    """The call that a checkpoint was made for, and its commit."""
    try:
        if path.is_symlink() or path.stat().st_size > _LIMIT:
            return None
        found = loads(path.read_bytes())
    except (OSError, *NOT_JSON):
        return None
    call, commit = (found.get("toolCall"), found.get("commitHash")) if isinstance(found, dict) else (None, None)
    if not isinstance(call, dict) or not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
        return None
    return _call(call.get("name"), call.get("args")), commit


def _call(name: JSON, given: JSON) -> bytes:
    return dumps([name, given])


def _root(folder: Path) -> str | None:
    try:
        text = (folder / ".project_root").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return absolute(text, None) if text else None
