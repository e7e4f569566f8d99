"""`Project`: one conversation per project with archives, in the layout of sage-emacs.

A record holds a tool call together with its result, and metadata.json is updated with every append.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import get_args

import msgspec
from msgspec import UNSET

from clew.agents.sage_agent.written_records import refuse_odd
from clew.agents.sage_emacs.locate import CONVERSATION, HISTORY, METADATA, source_file
from clew.agents.sage_emacs.metadata import describe, measure
from clew.agents.sage_emacs.written_records import ConversationRecord, Role, ToolRun
from clew.agents.sage_format import read_object
from clew.errors import UsageError
from clew.io.filesystem import explain_permission_errors, make_folder, replace_file, sync_folder
from clew.io.paths import encode_sage, same_project
from clew.model.json import JSON
from clew.model.time import parse_time
from clew.store.layout import folders, refuse_copy, refuse_links
from clew.store.log import Log, read_log, record_in
from clew.store.writer import Receipt, WriterConfig, encode_records, format_timestamp, new_uuid


class Project:
    """The current conversation of a project, and its archives."""

    def __init__(self, folder: Path, workspace: str, config: WriterConfig) -> None:
        refuse_links(folder, HISTORY)
        self.folder, self.workspace = folder, workspace
        self._config = config
        settings = config.settings
        self._log = Log(
            folder / CONVERSATION,
            system=config.system,
            durable=settings.durability == "disk",
            wait=settings.lock_wait,
            file_may_be_renamed=True,
            on_change=self._resume,
        )
        self._count, self._session = 0, ""

    def __enter__(self) -> Project:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Make everything durable."""
        self._log.close()

    def append(
        self,
        role: Role,
        content: str,
        *,
        tool_calls: Sequence[ToolRun] = (),
        estimated_tokens: int | None = None,
        usage: dict[str, JSON] | None = None,
        uuid: str | None = None,
        timestamp: str | None = None,
    ) -> Receipt:
        """Append a message; on return it is durable and metadata.json is up to date."""
        refuse_copy(self.folder)
        refuse_links(self.folder, HISTORY)
        _check(role, content, bool(tool_calls), timestamp)
        _check_numbers(estimated_tokens, usage, tool_calls)
        record = ConversationRecord(
            role=role,
            content=content,
            timestamp=timestamp or format_timestamp(self._config.clock()),
            uuid=uuid or new_uuid(),
            session_id="",
            tool_calls=list(tool_calls) or UNSET,
            tokens=UNSET if estimated_tokens is None else {"estimated": estimated_tokens},
            usage=usage or UNSET,
        )
        with explain_permission_errors(self.folder):
            self._config.prepare_store()
            make_folder(self._config.system, self.folder)
        with self._log.locked():
            record.session_id = self._session
            self._log.append(encode_records([record], self._config.redact))
            self._count += 1
            # The message is durable; metadata that cannot be written now are written with the next one.
            with suppress(OSError):
                self._describe(record.timestamp)
            return Receipt(record.uuid, self._count)

    def _resume(self) -> None:
        """Find the number of records and the session id; the metadata have the number if they have the log's size."""
        known, end = read_object(self.folder / METADATA) or {}, self._log.end
        count = known.get("message_count")
        if known.get("total_size") == end and isinstance(count, int):
            self._count = count
        else:
            self._count = measure(source_file(self._log.path))[0]
        self._session = next(filter(None, map(_session_of, self._log.backward())), None) or new_uuid()

    def _describe(self, time: str) -> None:
        known = read_object(self.folder / METADATA) or {}
        session = {"workspace": self.workspace, "started_at": time, "ended_at": time}
        replace_file(self._config.system, self.folder / METADATA, describe(session, self._count, self._log.end, known))

    def archive(self, name: str | None = None) -> Path | None:
        """Move the current conversation to the archives, and return its path; None where there is none."""
        if not self._log.path.exists():
            return None
        refuse_copy(self.folder)
        refuse_links(self.folder, HISTORY)
        with self._log.locked():
            make_folder(self._config.system, self.folder / HISTORY)
            target = _unused_path(self.folder / HISTORY, name or _stamp(self._config.clock()))
            self._config.system.replace(self._log.path, target)
            sync_folder(self._config.system, target.parent)
            sync_folder(self._config.system, self.folder)
            known = read_object(self.folder / METADATA) or {}
            emptied = {**known, "message_count": 0, "total_size": 0}
            replace_file(self._config.system, self.folder / METADATA, describe(_empty_session(), 0, 0, emptied))
        return target

    def archives(self) -> list[Path]:
        """Return the archives, oldest first by name."""
        return [] if (self.folder / HISTORY).is_symlink() else sorted((self.folder / HISTORY).glob("*.jsonl"))

    def records(self) -> Iterator[dict[str, JSON]]:
        """Yield the records of the current conversation; lines that are not JSON objects are left out."""
        return read_log(self._log.path)


def project_folder(base: Path, workspace: str) -> Path:
    """Return the folder of a project: an existing one with an older form of the name, else the current form."""
    path = workspace.rstrip("/")
    known = [folder for folder in folders(base) if same_project(folder.name, path)]
    aligned = base / (encode_sage(path) or "-")
    return aligned if aligned in known or not known else known[0]


def _check(role: str, content: str, has_calls: bool, timestamp: str | None) -> None:
    if role not in get_args(Role):
        raise UsageError(f"the role is {role!r}, not one of {', '.join(get_args(Role))}")
    if not isinstance(content, str) or (not content and not has_calls):
        raise UsageError("the content is empty or not text")
    if timestamp is not None and parse_time(timestamp) is None:
        raise UsageError(f"not a time in ISO 8601: {timestamp!r}")


def _check_numbers(tokens: int | None, usage: dict[str, JSON] | None, runs: Sequence[ToolRun]) -> None:
    if tokens is not None and (isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0):
        raise UsageError(f"estimated_tokens is {tokens!r}, not a number from 0 on")
    refuse_odd(usage, "usage")
    for run in runs:
        refuse_odd([part for part in msgspec.structs.astuple(run) if part is not UNSET], "a tool call")


def _empty_session() -> dict[str, JSON]:
    return {"workspace": "", "started_at": None, "ended_at": None}


def _stamp(seconds: float) -> str:
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime(seconds))


def _unused_path(folder: Path, name: str) -> Path:
    if not name.replace("-", "").replace("_", "").isalnum():
        raise UsageError(f"an archive's name has letters, digits, - and _ only: {name!r}")
    target, number = folder / f"{name}.jsonl", 1
    while target.exists():
        number += 1
        target = folder / f"{name}-{number}.jsonl"
    return target


def _session_of(line: bytes) -> str | None:
    claim = (record_in(line) or {}).get("session_id")
    return claim if isinstance(claim, str) and claim else None
