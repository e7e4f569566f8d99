"""A home folder with sessions of a fictional developer, so that every command can be tried."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from clew.datadir import private_folder
from clew.demo.claude_code import PROMPT_HISTORY, claude_code_files
from clew.demo.cline import cline_files
from clew.demo.codex import THREAD_NAMES, codex_files
from clew.demo.continue_dev import SESSION_LIST, continue_files, session_list
from clew.demo.copilot_cli import copilot_cli_files
from clew.demo.examples import copy_examples
from clew.demo.gemini import gemini_files
from clew.demo.kimi_code import kimi_code_files
from clew.demo.mistral_vibe import mistral_vibe_files
from clew.demo.pi import pi_files
from clew.demo.qwen_code import qwen_code_files
from clew.demo.sage import sage_agent_files, sage_emacs_files
from clew.demo.sessions import Session, build_sessions
from clew.errors import UsageError
from clew.host import current_time
from clew.model.time import parse_time

__all__ = ["write_demo"]

_TIME = re.compile(rb'"timestamp": ?"([^"]+)"')


_FORMATS = {
    "claude-code": (".claude", claude_code_files),
    "cline": (".cline", cline_files),
    "codex": (".codex", codex_files),
    "continue": (".continue", continue_files),
    "copilot-cli": (".copilot", copilot_cli_files),
    "gemini": (".gemini", gemini_files),
    "kimi-code": (".kimi-code", kimi_code_files),
    "mistral-vibe": (".vibe", mistral_vibe_files),
    "pi": (".pi", pi_files),
    "qwen-code": (".qwen", qwen_code_files),
    "sage-agent": (".sage", sage_agent_files),
    "sage-emacs": (".emacs.d", sage_emacs_files),
}
"""The folder of each agent below the home, and how its files are written."""

_SHARED_FILES = (PROMPT_HISTORY, THREAD_NAMES)
"""Files to which every session appends lines."""


def write_demo(target: Path, now: datetime | None = None) -> list[Path]:
    """Write the demo home into `target`, which must be new or empty; returns the files written.

    Hand-written sessions have fixed dates. The others are those of the year before `now`, default: the current time.
    """
    _claim(target)
    sessions = sorted(build_sessions(now or current_time()), key=lambda session: session.started)
    examples = copy_examples(target)
    set_file_times(examples)
    written = {*examples, *(path for session in sessions for path in _write_session(target, session))}
    _add_gemini_projects(target / ".gemini" / "projects.json", sessions)
    continue_list = target / ".continue" / SESSION_LIST
    _write(continue_list, session_list(sessions))
    return sorted({*written, continue_list})


def _write_session(home: Path, session: Session) -> Iterable[Path]:
    folder, files_of = _FORMATS[session.agent]
    for name, content in files_of(session):
        path = home / folder / name
        private_folder(str(path.parent))
        _write(path, content, "ab" if name in _SHARED_FILES else "wb")
        os.utime(path, (session.ended.timestamp(), session.ended.timestamp()))
        yield path


def _write(path: Path, content: bytes, mode: str = "wb") -> None:
    with open(path, mode, opener=_open_private) as file:
        file.write(content)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _add_gemini_projects(path: Path, sessions: Iterable[Session]) -> None:
    """Name the folders of projects as Gemini CLI does."""
    names = json.loads(path.read_bytes())
    names["projects"] |= {session.folder: session.project for session in sessions if session.agent == "gemini"}
    path.write_text(json.dumps(names, indent=2), encoding="utf-8")


def _claim(target: Path) -> None:
    if target.is_symlink():
        raise UsageError(f"{target} is a symbolic link: name a new folder for the demo")
    if target.exists() and not target.is_dir():
        raise UsageError(f"{target} is not a folder")
    if target.is_dir() and any(target.iterdir()):
        raise UsageError(f"{target} is not empty: name a new folder for the demo")
    private_folder(str(target))


def set_file_times(paths: Iterable[Path]) -> None:
    """Date each file to the last timestamp among its records."""
    for path in paths:
        times = [parse_time(text.decode()) for text in _TIME.findall(path.read_bytes())]
        last = max((time for time in times if time is not None), default=None)
        if last is not None:
            os.utime(path, (last.timestamp(), last.timestamp()))
