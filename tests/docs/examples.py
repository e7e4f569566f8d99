"""The examples of the pages, run in the home that `clew demo` writes. As a program: writes their output anew.

The clock stands still, the home is shown as `~`, and a line of three dots in a page stands for any lines. A command
that fails is followed by `$ echo $?`.
"""

import atexit
import io
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from click.testing import CliRunner

from clew.cli.main import main
from clew.demo import write_demo
from tests.demo_home import write_small_demo
from tests.docs.example_repository import FOLDER, write_example_repository
from tests.docs.pages import Fence, fences, pages

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
HOME = Path("ada-at-home")
STATUS = "echo $?"
DOTS = "..."
_VARIABLES = ("CLEW_", "XDG_", "CLAUDE_")


class _Clock(datetime):
    @classmethod
    def now(cls, tz: object = None) -> "_Clock":  # noqa: ARG003
        return cls.fromtimestamp(NOW.timestamp(), UTC)


class Step(NamedTuple):
    """A command, and what the page says it prints."""

    command: str
    output: str


class Shell:
    """Runs the commands of a page, one after the other."""

    def __init__(self, home: Path) -> None:
        self._home, self.status = home, 0

    def run(self, command: str, stdin: str = "") -> str:
        """What a command prints, on both streams; the home is shown as `~`, the current folder as /home/ada."""
        if command == STATUS:
            return f"{self.status}\n"
        program, *arguments = shlex.split(command)
        assert program == "clew", f"only clew can be run here: {command}"
        arguments = [str(self._home) + word[1:] if word.startswith("~/") else word for word in arguments]
        result = CliRunner().invoke(main, arguments, input=stdin, prog_name="clew")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        self.status = result.exit_code
        return self.shown(result.output)

    def shown(self, text: str) -> str:
        """The text as a page shows it."""
        text = text.replace(str(Path.cwd() / self._home), "~").replace(str(self._home), "~")
        text = text.replace(str(Path.cwd()), "/home/ada")
        return "\n".join(line.rstrip() for line in text.splitlines()) + ("\n" if text else "")


@contextmanager
def demo_shell(folder: Path) -> Iterator[Shell]:
    """A shell in an empty folder, with the small demo as its home."""
    write_small_demo(folder / HOME)
    write_example_repository(folder / FOLDER)
    with shell_at(folder) as shell:
        yield shell


@contextmanager
def page_shell() -> Iterator[Shell]:
    """A shell with the whole demo as its home, and the catalog of it: reading all sessions takes a second."""
    kept, folder = prepared_folder(), prepared_folder().with_name("shell")
    shutil.copytree(kept, folder)
    try:
        with shell_at(folder) as shell:
            yield shell
    finally:
        shutil.rmtree(folder)


@cache
def prepared_folder() -> Path:
    """A folder with the whole demo, synced. The catalog names its sessions by the path of the folder "shell"."""
    parent = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, parent)
    write_demo(parent / "shell" / HOME, NOW)
    write_example_repository(parent / "shell" / FOLDER)
    with shell_at(parent / "shell") as shell:
        shell.run("clew sync")
    return (parent / "shell").rename(parent / "kept")


@contextmanager
def shell_at(folder: Path) -> Iterator[Shell]:
    """A shell in a folder; its home is given by a relative path, because its length shows in figures."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_VARIABLES)}
    world = {**kept, "HOME": str(HOME), "USERPROFILE": str(HOME), "COLUMNS": "100", "NO_COLOR": "1"}
    world["CLEW_TIMEZONE"] = "UTC"
    # clew's own folders must be named by absolute paths.
    own = folder.resolve() / HOME
    world |= {"CLEW_DATA_DIR": str(own / ".local/share/clew"), "CLEW_CONFIG_DIR": str(own / ".config/clew")}
    with mock.patch.dict(os.environ, world, clear=True), mock.patch("clew.host.datetime", _Clock), chdir(folder):
        yield Shell(HOME)


def steps(text: str) -> list[Step]:
    """The commands of a `console` block."""
    parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)
    assert not parts[0].strip(), f"output before the first command: {parts[0]!r}"
    return [Step(command, output) for command, output in zip(parts[1::2], parts[2::2], strict=True)]


def matches(expected: str, actual: str) -> bool:
    """Whether a command printed what the page says."""
    pattern = "".join(r"(?:.*\n)*?" if line == DOTS + "\n" else re.escape(line) for line in expected.splitlines(True))
    return re.fullmatch(pattern, actual) is not None


def run_python(code: str, place: str, names: dict[str, object], shell: Shell) -> str:
    """What a piece of Python prints; its names stay for the next piece."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(code, place, "exec"), names)
    return shell.shown(printed.getvalue())


def printed_by(blocks: list[Fence], at: int, text: str) -> Fence | None:
    """The `text` block right behind a piece of Python."""
    behind = blocks[at + 1] if at + 1 < len(blocks) else None
    if behind is None or behind.kind != "text" or text[blocks[at].end : behind.start].strip() != "```\n\n```text":
        return None
    return behind


def refreshed(text: str, shell: Shell) -> str:
    """The page with all output as it is now; what still matches stays as it stands."""
    blocks = fences(text)
    names: dict[str, object] = {}
    new: dict[Fence, str] = {}
    for at, block in enumerate(blocks):
        if block.kind == "console":
            new[block] = "".join(_refreshed(step, shell) for step in steps(block.text))
        elif block.kind == "python" and not block.title:
            printed = run_python(block.text, "page", names, shell)
            behind = printed_by(blocks, at, text)
            if behind is not None and not matches(behind.text, printed):
                new[behind] = printed
    for block, better in sorted(new.items(), key=lambda item: -item[0].start):
        text = text[: block.start] + better + text[block.end :]
    return text


def _refreshed(step: Step, shell: Shell) -> str:
    actual = shell.run(step.command)
    return f"$ {step.command}\n{step.output if matches(step.output, actual) else actual}"


def refresh() -> None:
    """Write every page with the output its examples have now."""
    for page in pages():
        with page_shell() as shell:
            page.write_text(refreshed(page.read_text(encoding="utf-8"), shell), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    refresh()
