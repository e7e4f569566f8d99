"""Reads git repositories with the user's git, such that nothing in a repository can run a command.

No other module runs git. Settings of the repository that name commands are overridden: hooks, monitors, external diffs,
text converters, pagers, signature checks. Missing objects of a partial clone are not fetched. Revisions stand behind
`--end-of-options`.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from clew.errors import SourceUnreadable, UsageError
from clew.io.git_worktrees import same_folder_in_worktrees
from clew.io.paths import escape_controls

_SAFE_GIT = (
    *("git", "--no-pager", "--no-replace-objects", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
    *("-c", "log.showSignature=false", "-c", "core.quotePath=false", "-c", "diff.submodule=short"),
    *("-c", "i18n.logOutputEncoding=UTF-8", "-c", "diff.orderFile=", "-c", "color.ui=false"),
)
_KEPT_VARIABLES = frozenset(
    {
        *("GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM"),
        *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"),
    }
)
"""Variables of git that are passed on. Others, such as GIT_DIR in a hook, would name another repository."""
GIT_TIMEOUT_SECONDS = 60
MAX_OUTPUT_BYTES = 256 << 20
MAX_COMMITS = 10_000
"""Commits of a range that are read; the newest come first."""
MAX_DIFF_BYTES = 64 << 20
MAX_BLOB_BYTES = 1 << 20
MAX_FILES_BYTES = 64 << 20
MAX_TIME_SECONDS = 253_402_300_799
"""The end of the year 9999, in seconds since 1970."""
_LOG_FIELDS = ("%H", "%P", "%at", "%ct", "%s", "%B")
_HASH = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_OBJECT = re.compile(rb"([0-9a-f]{40,64}) ([a-z]+) (\d{1,18})")
"""The hash, the kind and the size of an object, as `git cat-file` prints them. It repeats a name that is missing."""
_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_ESCAPE = re.compile(rb"\\(?:([0-3][0-7]{2})|(.))", re.DOTALL)
_ESCAPED_LETTERS = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
"""The character for each letter after a backslash in a quoted name."""
_DIFF_OPTIONS = (
    *("-r", "--root", "-p", "-U0", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"),
    *("--no-indent-heuristic", "--diff-algorithm=myers", "--submodule=short", "--src-prefix=a/", "--dst-prefix=b/"),
)  # fmt: skip
_NO_REVISION = re.compile(r"(?:bad revision|ambiguous argument|bad object|Invalid revision range) '?([^']*)")


class Commit(NamedTuple):
    """A commit. Times are in seconds since 1970; text that is not valid UTF-8 has replacement characters."""

    hash: str
    parents: tuple[str, ...]
    author_time: int | None
    """None if the commit has no valid time, or one beyond the calendar."""
    commit_time: int | None
    subject: str
    message: str

    @property
    def known_times(self) -> list[int]:
        """The times of the author and of the commit, as far as they are known."""
        return [time for time in (self.author_time, self.commit_time) if time is not None]


class CommitLog(NamedTuple):
    """Commits, the newest first."""

    commits: list[Commit]
    is_cut: bool
    """True if there are more than are read."""


class FileDiff(NamedTuple):
    """The lines that a commit removed from a file and added to it."""

    path: str
    removed: tuple[str, ...]
    added: tuple[str, ...]
    headers: tuple[bytes, ...] = ()
    """What git says of a change without lines: modes, and the hashes of binary contents."""


class Diffs(NamedTuple):
    """The changed files of commits, by hash."""

    by_commit: dict[str, list[FileDiff]]
    is_cut: bool
    """True if there is more than is read."""


class _Object(NamedTuple):
    """An object of a repository."""

    hash: str
    kind: str
    size: int


class Repository(NamedTuple):
    """A git repository."""

    folder: Path
    """The folder in which git is run."""
    worktrees: tuple[Path, ...]
    """Where its files are checked out; none for a bare repository."""
    is_shallow: bool

    def commits(self, revisions: Sequence[str], limit: int | None = None, *, since: int | None = None) -> CommitLog:
        """The commits of ranges such as `main..HEAD`; without any, of all branches.

        Without a limit, at most 10,000. `since` leaves out commits before a time, in seconds since 1970; those without
        a valid time are kept. Raises UsageError for an unknown revision.
        """
        count = MAX_COMMITS + 1 if limit is None else limit
        options = ["-z", f"--format=tformat:{'%x00'.join(_LOG_FIELDS)}", f"--max-count={count}", "--no-show-signature"]
        named = ["--end-of-options", *revisions] if revisions else ["--branches", "--remotes", "HEAD"]
        if not revisions and not self._has_head():
            named.remove("HEAD")
        output = _run_git(self.folder, "log", *options, *named, "--")
        fields = [field.decode("utf-8", "replace") for field in output.split(b"\0")]
        size = len(_LOG_FIELDS)
        rows = (fields[at : at + size] for at in range(0, len(fields) - size + 1, size))
        commits = [_commit(row) for row in rows]
        # Git's own `--since` takes a commit without a valid time, and all commits before it, for too old.
        if since is not None:
            commits = [commit for commit in commits if commit.commit_time is None or commit.commit_time >= since]
        is_cut = limit is None and len(commits) > MAX_COMMITS
        return CommitLog(commits[:MAX_COMMITS] if is_cut else commits, is_cut)

    def commit_times(self, hashes: Sequence[str]) -> dict[str, int | None]:
        """The commit times of commits by their hashes; empty if one of them is missing, as in a shallow clone."""
        if not hashes:
            return {}
        try:
            output = _run_git(
                self.folder, "log", "--no-walk=unsorted", "--stdin", "--format=tformat:%H %ct", "--no-show-signature",
                stdin="".join(f"{name}\n" for name in hashes).encode(),
            )  # fmt: skip
        except (SourceUnreadable, UsageError):
            return {}
        lines = (line.partition(" ") for line in output.decode().split("\n"))
        return {name: _parse_time(time) for name, _, time in lines}

    def _has_head(self) -> bool:
        try:
            _run_git(self.folder, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")
        except (SourceUnreadable, UsageError):
            return False
        return True

    def is_empty(self) -> bool:
        """True without a commit on any branch."""
        return not self._has_head() and not _run_git(self.folder, "for-each-ref", "--count=1", "refs/heads").strip()

    def diffs(self, hashes: Iterable[str]) -> Diffs:
        """The changed files of commits, against their first parent; merges have none.

        What is beyond 64 MB together is left out.
        """
        named = "".join(f"{name}\n" for name in hashes).encode()
        if not named:
            return Diffs({}, is_cut=False)
        output = _run_git(self.folder, "diff-tree", "--stdin", *_DIFF_OPTIONS, stdin=named, cut_at=MAX_DIFF_BYTES)
        return Diffs(_parse_diffs(output), is_cut=len(output) >= MAX_DIFF_BYTES)

    def full_hashes(self, names: Sequence[str]) -> dict[str, str]:
        """The commits that exist among hashes and their beginnings, by the name that was asked for."""
        found = self._look_up_objects([f"{name}^{{commit}}" for name in names])
        return {name: one.hash for name, one in zip(names, found, strict=False) if one is not None}

    def files(self, names: Sequence[str], max_bytes: int = MAX_BLOB_BYTES) -> dict[str, bytes]:
        """The contents of objects such as `branch:path` that exist and have at most `max_bytes`.

        What is beyond 64 MB together is left out. Sizes are asked for first: a small object can unpack to a large one.
        """
        described = zip(names, self._look_up_objects(names), strict=False)
        blobs = {
            name: one for name, one in described if one is not None and one.kind == "blob" and one.size <= max_bytes
        }
        wanted, left = [], MAX_FILES_BYTES
        for blob in dict.fromkeys(blobs.values()):
            if blob.size <= left:
                wanted.append(blob.hash)
                left -= blob.size
        bodies = _batch_bodies(self._cat_file("--batch", wanted))
        return {name: bodies[blob.hash] for name, blob in blobs.items() if blob.hash in bodies}

    def _look_up_objects(self, names: Sequence[str]) -> list[_Object | None]:
        """The objects of names; None where there is none. Nothing if git cannot be asked for one of the names."""
        found = map(_OBJECT.fullmatch, self._cat_file("--batch-check", names).split(b"\n")[:-1])
        return [_Object(one[1].decode(), one[2].decode(), int(one[3])) if one else None for one in found]

    def _cat_file(self, option: str, names: Sequence[str]) -> bytes:
        if not names or any("\n" in name for name in names):
            return b""
        try:
            stdin = "".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return b""
        return _run_git(self.folder, "cat-file", option, stdin=stdin)


def open_repository(folder: Path) -> Repository:
    """The repository of a folder. Raises SourceUnreadable if there is none, or no git."""
    if not folder.is_dir():
        raise SourceUnreadable(f"{folder}: no such folder")
    answers = _run_git(folder, "rev-parse", "--is-shallow-repository", "--is-inside-work-tree").decode().split()
    worktrees: tuple[Path, ...] = ()
    if answers[1:] == ["true"]:
        top = Path(os.fsdecode(_run_git(folder, "rev-parse", "--show-toplevel").rstrip(b"\n")))
        # A setting of the repository can name any folder as its worktree.
        if folder.resolve().is_relative_to(top.resolve()):
            worktrees = (top, *same_folder_in_worktrees(top))
    return Repository(folder, worktrees, answers[:1] == ["true"])


@contextmanager
def repository_of_objects(objects: Path) -> Iterator[Repository]:
    """A new repository that only has the objects of another one: its settings, hooks and references are not read."""
    with tempfile.TemporaryDirectory() as folder:
        git_folder = Path(folder) / ".git"
        for name in ("objects/info", "refs"):
            (git_folder / name).mkdir(parents=True)
        (git_folder / "HEAD").write_text("ref: refs/heads/main\n")
        quoted = os.fsencode(objects.resolve()).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
        (git_folder / "objects" / "info" / "alternates").write_bytes(b'"%s"\n' % quoted)
        yield Repository(Path(folder), (), is_shallow=False)


def _run_git(folder: Path, *arguments: str, stdin: bytes = b"", cut_at: int | None = None) -> bytes:
    """What a git command prints. Raises UsageError for an unknown revision, SourceUnreadable for any other failure.

    With `cut_at`, bytes after the first ones are left out. Without it, an output of more than 256 MB is an error.
    """
    max_bytes = MAX_OUTPUT_BYTES if cut_at is None else cut_at
    command = [*_SAFE_GIT, "-C", str(folder), *arguments]
    with tempfile.TemporaryFile() as stdin_file, tempfile.TemporaryFile() as errors:
        stdin_file.write(stdin)
        stdin_file.seek(0)
        try:
            process = subprocess.Popen(
                command, env=_environment(), stdin=stdin_file, stdout=subprocess.PIPE, stderr=errors
            )
        except FileNotFoundError:
            raise SourceUnreadable("git is not installed") from None
        except OSError as error:
            raise SourceUnreadable(f"git: {error.strerror}") from None
        except ValueError:
            raise UsageError("a revision has characters that no revision can have") from None
        is_late = threading.Event()
        timer = threading.Timer(GIT_TIMEOUT_SECONDS, _stop, (process, is_late))
        timer.start()
        try:
            with process:
                assert process.stdout is not None
                output = process.stdout.read(max_bytes + 1)
                is_large = len(output) > max_bytes
                if is_large:
                    process.kill()
        finally:
            timer.cancel()
        errors.seek(0)
        if is_large and cut_at is not None:
            return output[:max_bytes]
        if is_large:
            raise SourceUnreadable(f"{folder.resolve()}: git printed more than {MAX_OUTPUT_BYTES >> 20} MB")
        if process.returncode != 0 and is_late.is_set():
            raise SourceUnreadable(f"{folder.resolve()}: git took longer than {GIT_TIMEOUT_SECONDS} seconds")
        if process.returncode != 0:
            raise _failure(folder.resolve(), errors.read(10_000))
    return output


def _stop(process: subprocess.Popen[bytes], is_late: threading.Event) -> None:
    is_late.set()
    process.kill()


def _failure(folder: Path, printed: bytes) -> SourceUnreadable | UsageError:
    text = printed.decode("utf-8", "replace").strip()
    line = escape_controls(text.partition("\n")[0].removeprefix("fatal: "))
    if "not a git repository" in line:
        return SourceUnreadable(f"{folder}: not a git repository")
    if unknown := _NO_REVISION.search(line):
        return UsageError(f"{unknown[1]!r} is no revision or range of this repository")
    return SourceUnreadable(f"{folder}: git: {line or 'failed without a message'}")


def _environment() -> dict[str, str]:
    """The variables of this process, without those of git that name a repository, a command or a protocol."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT_VARIABLES}
    # Messages are compared, so they must be in English. No protocol is allowed: nothing is fetched.
    return {
        **kept,
        "LC_ALL": "C",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
    }


def _batch_bodies(output: bytes) -> dict[str, bytes]:
    """The contents that `git cat-file --batch` prints, by hash."""
    found: dict[str, bytes] = {}
    start = 0
    while (end := output.find(b"\n", start)) >= 0:
        header = _OBJECT.fullmatch(output[start:end])
        if header is None:
            break
        size = int(header[3])
        found[header[1].decode()] = output[end + 1 : end + 1 + size]
        start = end + size + 2
    return found


def _commit(fields: Sequence[str]) -> Commit:
    name, parents, authored, committed, subject, message = fields
    return Commit(name, tuple(parents.split()), _parse_time(authored), _parse_time(committed), subject, message)


def _parse_time(text: str) -> int | None:
    """A time as git prints it: as nothing for a damaged commit."""
    is_time = re.fullmatch(r"\d{1,18}", text, re.ASCII) and int(text) <= MAX_TIME_SECONDS
    return int(text) if is_time else None


def _parse_diffs(output: bytes) -> dict[str, list[FileDiff]]:
    found: dict[str, list[FileDiff]] = {}
    files: list[FileDiff] = []
    path, removed, added, headers = "", list[str](), list[str](), list[bytes]()
    lines = iter(output.split(b"\n"))

    def finish_file() -> None:
        if path:
            has_lines = bool(removed or added)
            files.append(FileDiff(path, tuple(removed), tuple(added), () if has_lines else tuple(headers)))
        for found_lines in (removed, added, headers):
            found_lines.clear()

    for line in lines:
        if _HASH.fullmatch(line):
            finish_file()
            path, files = "", found.setdefault(line.decode(), [])
        elif line.startswith(b"diff --git "):
            finish_file()
            path = _path_in_header(line.removeprefix(b"diff --git "))
        elif hunk := _HUNK.match(line):
            _read_hunk(lines, hunk, removed, added)
        elif line:
            headers.append(line)
    finish_file()
    return found


def _path_in_header(names: bytes) -> str:
    """The path in `a/path b/path`: both are the same, because renames are not looked for. Git quotes some names."""
    name = names[: len(names) // 2]
    if name.startswith(b'"'):
        name = _ESCAPE.sub(_unescaped, name[1:-1])
    return name.removeprefix(b"a/").decode("utf-8", "replace")


def _unescaped(match: re.Match[bytes]) -> bytes:
    digits, letter = match.groups()
    return bytes([int(digits, 8)]) if digits else _ESCAPED_LETTERS.get(letter, letter)


def _read_hunk(lines: Iterator[bytes], hunk: re.Match[bytes], removed: list[str], added: list[str]) -> None:
    """Take exactly the lines of a hunk: content may look like a header."""
    left, right = (1 if count is None else int(count) for count in hunk.groups())
    while left or right:
        line = next(lines, None)
        if line is None:
            return
        if line.startswith(b"-") and left:
            left -= 1
            removed.append(line[1:].decode("utf-8", "replace"))
        elif line.startswith(b"+") and right:
            right -= 1
            added.append(line[1:].decode("utf-8", "replace"))
        elif not line.startswith(b"\\"):
            return
