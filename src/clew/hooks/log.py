"""What became of the hooks that agents ran: a short list in clew's data folder.

It holds the time, the agent, an outcome of a fixed list, and the id of the session if that is a UUID: other ids are
names of files, which may be anything. Nothing that an agent sent gets into it.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import msgspec

from clew.host import data_dir
from clew.io import json_file
from clew.model.time import spell_time

LOG_FILE = "hooks.json"
MAX_RUNS = 100
ARCHIVED = "archived"
UNCHANGED = "unchanged"
OUTCOMES = {
    ARCHIVED: "the session was archived",
    UNCHANGED: "the archive had the session already",
    "no-agent": "refused: the hook does not name its agent; run `clew hook install`",
    "no-input": "refused: the agent sent nothing",
    "too-large": "refused: the input is too large",
    "not-json": "refused: the input is not a JSON object",
    "no-transcript": "the agent named no file: a session that it did not save",
    "not-a-session": "refused: the file is not a session that clew finds in the folders of the agent",
    "unreadable": "a file of the session cannot be read; run `clew archive`",
    "busy": "another process wrote to the archive all the time; run `clew archive`",
    "failed": "an error; run `clew archive`",
}
"""The outcomes, with explanations for people."""


class HookRun(msgspec.Struct):
    """A hook that an agent ran."""

    agent: str | None
    """None if the hook did not name it."""
    outcome: str
    session: str | None = None
    """A UUID."""
    error: str | None = None
    """The type of an unexpected error."""


def log_path() -> Path:
    """The path of the list."""
    return data_dir() / LOG_FILE


def append_run(run: HookRun, time: datetime) -> None:
    """Add a run; the oldest ones are dropped. A damaged list is set aside."""
    with json_file.update(log_path(), HookRun, set_aside=True) as runs:
        number = sum(key.startswith(spell_time(time)) for key in runs)
        runs[f"{spell_time(time)} {number}" if number else spell_time(time)] = run
        for key in sorted(runs)[:-MAX_RUNS]:
            del runs[key]


def load_runs() -> list[tuple[str, HookRun]]:
    """The runs with their times, the newest first."""
    runs = json_file.load(log_path(), HookRun)
    return [(key.partition(" ")[0], runs[key]) for key in sorted(runs, reverse=True)]
