"""What a module below `clients` declares: a client, the sessions it records, and the file changes it makes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.realclients.history import JSON
from tests.realclients.model import PORT
from tests.realclients.script import Call, Script, Turn
from tests.realclients.wire import Wire

LATEST = "latest"
"""In place of a session id: the session that the client wrote last."""
MODEL_URL = f"http://127.0.0.1:{PORT}"
SUBAGENT_TASK = "Count the lines of the bell."
"""How the task of every sub-agent begins. The model tells the requests of sub-agents by it."""
TWO_MINUTES_LATER = {"NODE_OPTIONS": f"--require {Path(__file__).with_name('clock_two_minutes_ahead.cjs')}"}
"""The environment of a part that a client on node believes to happen two minutes later."""


@dataclass(frozen=True)
class Client:
    """How a client is installed, started and resumed, and where it keeps its sessions."""

    name: str
    agent: str
    """The id of the agent in clew. Tests that need clew to read or write it are skipped until clew does."""
    wire: Wire
    """The protocol it speaks with its model."""
    binary: str
    """The program, as a glob below the folder of this client in the lab."""
    arguments: Callable[[str, str | None, Path], list[str]]
    """From the prompt, the session to resume (None for a new one, or `LATEST`) and the home."""
    sessions: tuple[str, ...]
    """The files that hold sessions, as globs below the home."""
    id_of: Callable[[Path], str | None] = lambda path: path.stem
    """The session id of such a file; None for a sub-agent's."""
    list_sessions: Callable[[Path], list[str]] | None = None
    """The ids of the main sessions below a home, for clients with several sessions in one file."""
    npm: Mapping[str, str] = field(default_factory=dict)
    """The npm packages it needs, with versions. `node` among them gives the client a node of that version."""
    pip: Mapping[str, str] = field(default_factory=dict)
    program_version: str = ""
    """The version of the program, where the tests install only a library of it, which has another version."""
    minimum_python: tuple[int, int] = (3, 11)
    environment: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    """Files that it needs below its home, and their content."""
    caches: tuple[str, ...] = ()
    """Names of files that hold paths of the home they were written in; the client creates them again."""
    sends_images: bool = True
    """Whether it sends images to a model of the lab."""
    sends_thoughts_as_answers: bool = False
    """Whether the thoughts of another model are sent as part of its answers."""
    asks_for_titles: bool = False
    """Whether it asks its model for the title of a session; the model answers `DONE`."""
    resumes_latest: bool = True
    """Whether `arguments` takes `LATEST`."""

    def write_settings(self, home: Path) -> None:
        """Write the settings files that the home does not have."""
        for name, content in self.settings.items():
            path = home / name
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, encoding="utf-8")

    def copy_home(self, home: Path, target: Path) -> Path:
        """Copy a home with its sessions, without caches."""
        shutil.copytree(home, target, symlinks=True, ignore=shutil.ignore_patterns(*self.caches))
        return target

    def files(self, home: Path) -> list[Path]:
        """The session files below the home, those of sub-agents included."""
        return sorted({path for pattern in self.sessions for path in home.glob(pattern)})

    def session_ids(self, home: Path) -> list[str]:
        """The ids of the sessions below the home, without sub-agents."""
        if self.list_sessions is not None:
            return self.list_sessions(home)
        ids = (self.id_of(path) for path in self.files(home))
        return sorted({session for session in ids if session is not None})


@dataclass(frozen=True)
class Part:
    """One run of a client: the prompt, and the turns of the model."""

    prompt: str
    turns: tuple[Turn, ...]
    subagent_turns: tuple[Turn, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def script(self) -> Script:
        return Script(self.turns, {SUBAGENT_TASK: self.subagent_turns} if self.subagent_turns else {})


@dataclass(frozen=True)
class Story:
    """A session to record: the first part begins it, every other part resumes it.

    Every story starts with the prompt "Make the bell ring twice." and edits bell.py. See `project.py`.
    """

    name: str
    client: Client
    parts: Callable[[Path], tuple[Part, ...]]
    """From the project's folder, since tools need absolute paths."""
    environment: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    """Arguments before those of the client."""
    shows_image: bool = False
    """Whether a tool returned the flag of the project."""
    writes_horn: bool = True
    """Whether horn.py is written and made louder."""
    has_subagent_file: bool = False
    """Whether the session of a sub-agent is a session of its own, in a file or in a database."""


@dataclass(frozen=True)
class FileChanges:
    """A session that changes the files of `test_files.FILES`: the calls of each run, one call in a turn."""

    name: str
    client: Client
    runs: Callable[[Path], tuple[tuple[Call, ...], ...]]
    minimum_exact_share: float
    """The share of answers of clew about the content of a file that must be exact."""
    environment: Mapping[str, str] = field(default_factory=dict)


def first_record(path: Path) -> JSON:
    """The first line of a file of JSON lines."""
    with path.open(encoding="utf-8") as lines:
        return json.loads(next(lines))
