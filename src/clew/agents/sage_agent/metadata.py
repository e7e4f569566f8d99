"""metadata.json of a session: its title, and what it should say when it is made from the log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from clew.agents.sage_agent.events import SUMMARY
from clew.analysis.facts import Facts
from clew.analysis.titles import short_title
from clew.model.json import JSON

VERSION = "0.1.0"
"""The version of the format's design, for records whose producer does not say its own."""


def title_of(known: Mapping[str, JSON], facts: Facts, session: str) -> str:
    """The name the program itself would show."""
    ranks = (
        known.get("customTitle"),
        facts.titles.get("custom_title"),
        known.get("summary"),
        facts.extra.get(SUMMARY),
        known.get("firstPrompt"),
        short_title(facts.first_prompt),
        known.get("name"),
    )
    return next((title for title in ranks if isinstance(title, str) and title), session)


def rebuilt(known: Mapping[str, JSON], session: Mapping[str, JSON], facts: Facts, records: int) -> dict[str, JSON]:
    """The metadata as the log has them; what only the metadata know is kept."""
    prompt = short_title(facts.first_prompt)
    found: dict[str, JSON] = {
        "customTitle": facts.titles.get("custom_title"),
        "summary": facts.extra.get(SUMMARY),
        "firstPrompt": prompt,
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


def disagreements(known: Mapping[str, JSON], session: str, records: int) -> Iterator[tuple[str, str]]:
    """Where the metadata are not as the log has them: the code of each, and what they say.

    A count that is behind is no contradiction: so does every process leave it that ended without closing its session.
    """
    count = known.get("messageCount")
    is_behind = type(count) is int and 0 <= count < records
    for name, truth in (("id", session), ("messageCount", records)):
        if known.get(name) != truth:
            code = "metadata-behind" if name == "messageCount" and is_behind else "metadata-mismatch"
            yield code, f"{name} is {known.get(name)!r}, the log says {truth!r}"


def spelled(metadata: Mapping[str, JSON]) -> bytes:
    """The file's bytes."""
    return (json.dumps(metadata, indent=2, ensure_ascii=False) + "\n").encode()
