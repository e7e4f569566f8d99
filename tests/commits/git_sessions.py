"""Git repositories and sessions of Claude Code that commit to them, both at invented times."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

BEGIN = datetime(2026, 11, 2, 10, 0, tzinfo=UTC)


def at(second: int) -> datetime:
    """A time so many seconds after the beginning."""
    return BEGIN + timedelta(seconds=second)


class GitRepository:
    """A repository whose commits have given times."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder

    @classmethod
    def create(cls, folder: Path) -> Self:
        """A new repository, without a commit."""
        made = cls(folder)
        made.git("init", "-q", "-b", "main")
        return made

    def git(self, *arguments: str, second: int = 0, stdin: bytes | None = None) -> str:
        """What a git command prints; it runs at a time."""
        time = f"@{int(at(second).timestamp())} +0000"
        who = {
            f"GIT_{role}_{what}": "ada@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        world = {**os.environ, **who, "GIT_AUTHOR_DATE": time, "GIT_COMMITTER_DATE": time, "GIT_EDITOR": "true"}
        world |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, env=world, capture_output=True, input=stdin, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode("utf-8", "replace")

    def write(self, path: str, text: str) -> None:
        """Write a file."""
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)

    def commit(self, message: str, second: int, files: dict[str, str] | None = None, *options: str) -> str:
        """Commit all files; returns what git prints."""
        for path, text in (files or {}).items():
            self.write(path, text)
        self.git("add", "-A")
        return self.git("commit", "--allow-empty", "-m", message, *options, second=second)

    def set_times(self, author: str, committer: str) -> str:
        """Make the last commit of main again with other times, in seconds since 1970 or invalid; returns its hash."""
        time = self.git("log", "-1", "--format=%at").strip()
        first, second, third = self.git("cat-file", "commit", "HEAD").split(f"> {time} ")
        raw = f"{first}> {author} {second}> {committer} {third}".encode()
        made = self.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=raw).strip()
        self.git("update-ref", "refs/heads/main", made)
        return made

    def head(self, revision: str = "HEAD") -> str:
        """The hash of a commit."""
        return self.git("rev-parse", revision).strip()


class ClaudeSession:
    """A session of Claude Code in a folder, record by record."""

    def __init__(self, home: Path, identity: str, folder: Path, agent: str = "") -> None:
        self.home, self.id, self._folder, self._agent = home, identity, folder, agent
        self._records: list[dict[str, Any]] = []

    def prompt(self, text: str, second: int) -> Self:
        """A prompt of the user."""
        return self._add("user", text, second)

    def run(self, command: str, output: str, second: int, *, seconds: int = 1, tool: str = "Bash") -> Self:
        """A command and its output."""
        return self._call(tool, {"command": command}, output, second, seconds)

    def edit(self, path: str, text: str, second: int, old: str | None = None) -> Self:
        """A file that is written, or edited if its old text is given."""
        name = str(self._folder / path)
        if old is None:
            return self._call("Write", {"file_path": name, "content": text}, "File created successfully", second, 1)
        return self._call("Edit", {"file_path": name, "old_string": old, "new_string": text}, "updated", second, 1)

    def _call(self, tool: str, arguments: dict[str, Any], output: str, second: int, seconds: int) -> Self:
        name = f"toolu_{self.id[:8]}_{len(self._records)}"
        self._add("assistant", [{"type": "tool_use", "id": name, "name": tool, "input": arguments}], second)
        return self._add("user", [{"type": "tool_result", "tool_use_id": name, "content": output}], second + seconds)

    def _add(self, role: str, content: Any, second: int) -> Self:
        number = len(self._records) + 1
        message: dict[str, Any] = {"role": role, "content": content}
        if role == "assistant":
            usage = {"input_tokens": 1_000_000, "output_tokens": 0}
            message |= {"id": f"msg_{self.id}{self._agent}_{number}", "model": "claude-sonnet-4-5", "usage": usage}
        self._records.append(
            {
                "type": role,
                "uuid": f"{self.id[:8]}-0000-4000-8000-{hash_digits(self._agent)}{number:06}",
                "parentUuid": None if number == 1 else self._records[-1]["uuid"],
                "sessionId": self.id,
                "timestamp": at(second).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
                "cwd": str(self._folder),
                "message": message,
                **({"isSidechain": True, "agentId": self._agent} if self._agent else {}),
            }
        )
        return self

    def save(self) -> Self:
        """Write the file of the session."""
        project = self.home / ".claude" / "projects" / str(self._folder).replace("/", "-").replace(".", "-")
        path = project / f"{self.id}.jsonl"
        if self._agent:
            path = project / self.id / "subagents" / f"agent-{self._agent}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(record) + "\n" for record in self._records))
        return self


def hash_digits(text: str) -> str:
    """Six digits that differ between names."""
    return f"{sum(map(ord, text)):06}"
