"""metadata.json of a session: what a list shows of it. It may lag behind the log, and can always be made from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from clew.agents.sage_agent import SageAgent
from clew.agents.sage_agent.locate import source_file
from clew.agents.sage_agent.metadata import rebuilt
from clew.agents.sage_agent.records import counts_as_message
from clew.agents.sage_format import encode_metadata
from clew.errors import SourceUnreadable
from clew.io.filesystem import System, replace_file
from clew.io.records import read_records
from clew.model.json import JSON
from clew.store.layout import FORMAT, MESSAGES, METADATA, OWN, read_object

_ORDER = (
    "id customTitle name firstPrompt lastPrompt summary createdAt updatedAt workingDirectory gitBranch model version "
    "messageCount state isSidechain parentSessionId metadata"
).split()
PROMPT_LENGTH = 100


def shortened(text: str) -> str:
    """A prompt as metadata hold it."""
    # So many words are enough letters, and a list of all words of a long text would be many times its size.
    return " ".join(text.split(None, PROMPT_LENGTH)[:PROMPT_LENGTH])[:PROMPT_LENGTH]


def count_records(log: Path) -> int:
    """The records of a log that a message count counts."""
    with log.open("rb") as stream:
        return sum(found.value is not None and counts_as_message(found.value) for found in read_records(stream))


def last_prompt(log: Path) -> str | None:
    """What a person said last, as metadata hold it."""
    words: JSON = None
    with log.open("rb") as stream:
        for found in read_records(stream):
            if found.value is not None and found.value.get("type") == "user":
                said = found.value.get("message")
                content = said.get("content") if isinstance(said, dict) else None
                words = content if isinstance(content, str) and content else words
    return None if words is None else shortened(words)


def known(folder: Path) -> dict[str, JSON]:
    """What the metadata say; nothing where they cannot be read."""
    return read_object(folder / METADATA) or {}


def from_log(folder: Path) -> dict[str, JSON]:
    """The metadata as the log has them; what only the metadata know is kept."""
    log = folder / MESSAGES
    agent, source = SageAgent(), source_file(log)
    try:
        facts = agent.facts(source)
        session = agent.session(source, facts)
        made = rebuilt({"state": "active", **known(folder)}, session, facts, count_records(log))
        last = last_prompt(log)
    except OSError as error:
        raise SourceUnreadable(f"{log}: {error.strerror or error}") from error
    return ordered(made if last is None else {**made, "lastPrompt": last})


def ordered(metadata: Mapping[str, JSON]) -> dict[str, JSON]:
    """The keys in their usual order, those of others behind; the store's own number is among them."""
    own = metadata.get("metadata")
    inner = dict(own) if isinstance(own, dict) else {}
    inner[OWN] = {"store": FORMAT, **(inner[OWN] if isinstance(inner.get(OWN), dict) else {})}
    full = {**metadata, "metadata": inner}
    return {name: full[name] for name in (*(n for n in _ORDER if n in full), *(n for n in full if n not in _ORDER))}


def write(system: System, folder: Path, metadata: Mapping[str, JSON]) -> None:
    """Replace the file; the caller holds the lock of the log."""
    # Spelled as the log spells it: an enum is its value.
    replace_file(system, folder / METADATA, encode_metadata(ordered(msgspec.to_builtins(metadata))))


def format_of(folder: Path) -> int:
    """The number of the store's form that the session says it has."""
    inner = known(folder).get("metadata")
    own = inner.get(OWN) if isinstance(inner, dict) else None
    number = own.get("store") if isinstance(own, dict) else None
    return number if isinstance(number, int) else FORMAT
