"""What metadata.json contains about a session, and how it is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clew.agents.base import SourceFile
from clew.agents.sage_agent import locate
from clew.agents.sage_agent.events import SUMMARY
from clew.agents.sage_agent.written_records import MessageRecord
from clew.agents.sage_format import normalized_time, read_metadata
from clew.analysis.facts import Facts
from clew.analysis.titles import short_title
from clew.model.json import JSON

VERSION = "0.1.0"
"""The version of the format's design, for records without one."""
KEY_ORDER = (
    "id customTitle name firstPrompt lastPrompt summary createdAt updatedAt workingDirectory gitBranch model version "
    "messageCount state isSidechain parentSessionId metadata"
).split()
SET_ONCE = ("firstPrompt", "createdAt", "workingDirectory")
"""Keys that are about the beginning of a session: a later message does not change them."""
PROMPTS = ("firstPrompt", "lastPrompt")
UPDATED, COUNT, LAST_PROMPT = "updatedAt", "messageCount", "lastPrompt"


def session_fields(source: SourceFile, facts: Facts) -> dict[str, JSON]:
    """Folder, times, parent and title of a session, which the metadata tell where its log does not."""
    known, session = read_metadata(source.path.parent) or {}, locate.session_id(source)
    parent, folder = known.get("parentSessionId"), known.get("workingDirectory")
    # In the order of the program itself.
    titles = (
        known.get("customTitle"),
        facts.titles.get("custom_title"),
        known.get("summary"),
        facts.extra.get(SUMMARY),
        known.get("firstPrompt"),
        short_title(facts.first_prompt),
        known.get("name"),
    )
    return {
        "workspace": facts.cwd or (folder if isinstance(folder, str) else ""),
        "started_at": facts.first_time or normalized_time(known.get("createdAt")),
        "ended_at": facts.last_time or normalized_time(known.get("updatedAt")),
        "is_agent_session": known.get("isSidechain") is True,
        "parent_session_id": parent if isinstance(parent, str) else None,
        "title": next((title for title in titles if isinstance(title, str) and title), session),
    }


def rebuilt(known: Mapping[str, JSON], session: Mapping[str, JSON], facts: Facts, records: int) -> dict[str, JSON]:
    """The metadata as the log has them; what only the metadata know is kept."""
    found: dict[str, JSON] = {
        "customTitle": facts.titles.get("custom_title"),
        "summary": facts.extra.get(SUMMARY),
        "firstPrompt": short_title(facts.first_prompt),
        "gitBranch": facts.git_branch,
        "workingDirectory": session["workspace"],
        "version": facts.version or VERSION,
        "state": "completed",
        "isSidechain": False,
        "createdAt": session["started_at"],
    }
    truth: dict[str, JSON] = {"id": session["id"], "messageCount": records}
    if session["ended_at"] is not None:
        truth["updatedAt"] = session["ended_at"]
    return {**{name: item for name, item in found.items() if item is not None}, **known, **truth}


def new_metadata(session: str, created_at: str, version: str) -> dict[str, JSON]:
    """Return the metadata of a session of which nothing else is known."""
    return {
        "id": session,
        "createdAt": created_at,
        "version": version,
        "state": "active",
        "isSidechain": False,
        "workingDirectory": "",
    }


def note_message(metadata: dict[str, JSON], record: MessageRecord) -> None:
    """Put what a new message changes into the metadata."""
    context, body = record.context, record.message
    metadata.setdefault("createdAt", record.timestamp)
    metadata["updatedAt"] = record.timestamp
    if context:
        metadata["workingDirectory"] = context.cwd
        if context.git_branch:
            metadata["gitBranch"] = context.git_branch
    if record.type == "user" and body and isinstance(body.content, str):
        metadata.setdefault("firstPrompt", body.content)
        metadata["lastPrompt"] = body.content
    if record.metadata and record.metadata.get("model") is not None:
        metadata["model"] = record.metadata["model"]


def disagreements(known: Mapping[str, JSON], session: str, records: int) -> Iterator[tuple[str, str]]:
    """The code and detail of each value in the metadata that differs from the log.

    A count that is too small has a code of its own: every process that ends without closing its session leaves one.
    """
    count = known.get("messageCount")
    is_behind = type(count) is int and 0 <= count < records
    for name, truth in (("id", session), ("messageCount", records)):
        if known.get(name) != truth:
            code = "metadata-behind" if name == "messageCount" and is_behind else "metadata-mismatch"
            yield code, f"{name} is {known.get(name)!r}, the log says {truth!r}"
