"""metadata.json made anew from the log, for both Sage programs."""

from __future__ import annotations

from pathlib import Path

from clew.agents import sage_agent, sage_emacs
from clew.agents.base import SourceFile
from clew.agents.sage_agent.metadata import rebuilt
from clew.agents.sage_agent.records import counts_as_message
from clew.agents.sage_emacs.metadata import describe, measure
from clew.agents.sage_format import encode_metadata, read_metadata
from clew.io.atomic import write_atomic
from clew.io.compress import open_source
from clew.io.records import read_records
from clew.migrate.step import Originals, Step, rewrite
from clew.model.json import JSON


def plan_metadata(source: SourceFile) -> list[Step]:
    """A step where the metadata are missing, damaged or untrue."""
    place = source.path.parent / "metadata.json"
    known, truth = _known(source), _truth(source)
    if known is None:
        return [step_for(place, "cannot be read")]
    if not place.exists():
        return [Step("metadata", place, None, "is missing")]
    wrong = [name for name, value in truth.items() if known.get(name) != value]
    return [Step("metadata", place, None, f"{', '.join(wrong)} not as in the log")] if wrong else []


def step_for(place: Path, reason: str) -> Step:
    """The step that makes metadata anew; something that is no file in their place is left alone."""
    if place.exists() and not place.is_file():
        return Step("leave", place, None, "not a regular file")
    return Step("metadata", place, None, reason)


def _is_agent(source: SourceFile) -> bool:
    return source.agent == sage_agent.locate.AGENT


def _known(source: SourceFile) -> dict[str, JSON] | None:
    return read_metadata(source.path.parent) if _is_agent(source) else sage_emacs.locate.metadata(source.path)


def _truth(source: SourceFile) -> dict[str, JSON]:
    if _is_agent(source):
        return {"id": sage_agent.locate.session_id(source), "messageCount": _count(source)}
    records, size = measure(source)
    return {"message_count": records, "total_size": size}


def _count(source: SourceFile) -> int:
    with open_source(source.path) as stream:
        return sum(record.value is not None and counts_as_message(record.value) for record in read_records(stream))


def rebuild(place: Path, originals: Originals) -> None:
    """Write the metadata of the log beside `place`; what was there stays as a backup."""
    content = _content(source_beside(place))
    if place.exists():
        rewrite(place, [content], originals)
    else:
        write_atomic(place, content)


def source_beside(place: Path) -> SourceFile:
    """The session that a metadata file describes."""
    conversation = place.with_name(sage_emacs.locate.CONVERSATION)
    if conversation.exists():
        return sage_emacs.locate.source_file(conversation)
    return sage_agent.locate.source_file(place.with_name(sage_agent.locate.MESSAGES))


def _content(source: SourceFile) -> bytes:
    known = _known(source) or {}
    if _is_agent(source):
        agent = sage_agent.SageAgent()
        facts = agent.facts(source)
        return encode_metadata(rebuilt(known, agent.session(source, facts), facts, _count(source)))
    emacs = sage_emacs.SageEmacs()
    return describe(emacs.session(source, emacs.facts(source)), *measure(source), known)
