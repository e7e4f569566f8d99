"""metadata.json of a session: what a list shows of it. It may be older than the log, and can be rebuilt from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from clew.agents.sage_agent import SageAgent
from clew.agents.sage_agent.locate import source_file
from clew.agents.sage_agent.metadata import KEY_ORDER, LAST_PROMPT, PROMPTS, SET_ONCE, UPDATED, note_message, rebuilt
from clew.agents.sage_agent.records import counts_as_message, message_text
from clew.agents.sage_agent.written_records import MessageRecord
from clew.agents.sage_format import encode_metadata, read_metadata
from clew.errors import SourceUnreadable
from clew.io.filesystem import System, replace_file
from clew.io.records import read_records
from clew.model.json import JSON
from clew.store.layout import FORMAT, MESSAGES, METADATA, OWN, Redact

MAX_PROMPT_CHARS = 100


class SessionMetadata:
    """Collects what a writer appends, and updates metadata.json."""

    def __init__(self, folder: Path, system: System, redact: Redact | None) -> None:
        self._folder, self._system, self._redact = folder, system, redact
        self._noted: dict[str, JSON] = {}
        self._must_rebuild = False
        self.is_current = True
        """False when messages were noted since the file was written."""

    def note(self, record: MessageRecord) -> None:
        """Remember what a message changes in the metadata."""
        self.is_current = False
        note_message(self._noted, record)

    def forget(self) -> None:
        """Drop what was remembered: the log was rewritten, so a remembered prompt may have been erased from it."""
        self._noted.clear()
        self._must_rebuild = True

    def write(self, defaults: Mapping[str, JSON], stated: Mapping[str, JSON], *, is_new: bool) -> None:
        """Replace metadata.json; the caller holds the lock of the log."""
        known = read(self._folder)
        if self._must_rebuild or (not known and not is_new):
            known = rebuild(self._folder)
        noted = dict(self._noted)
        for name in PROMPTS:
            if name in noted:
                noted[name] = self._shortened(noted[name])
        if str(known.get(UPDATED, "")) > str(noted.get(UPDATED, "")):
            noted.pop(UPDATED, None)  # the clock was set back
        noted |= {name: known[name] for name in SET_ONCE if known.get(name)}
        metadata = {**defaults, **known, **noted, **stated}
        write(self._system, self._folder, metadata if self._redact is None else self._redact(metadata))
        self.is_current, self._must_rebuild = True, False

    def _shortened(self, prompt: str) -> str:
        # Masked before it is shortened: half of a secret is not recognized.
        return shortened(prompt if self._redact is None else self._redact({"content": prompt})["content"])


def shortened(text: str) -> str:
    """A prompt as metadata hold it."""
    # So many words have enough letters; a list of all words of a long text would be many times its size.
    return " ".join(text.split(None, MAX_PROMPT_CHARS)[:MAX_PROMPT_CHARS])[:MAX_PROMPT_CHARS]


def count_records(log: Path) -> int:
    """Count the records that the metadata count."""
    with log.open("rb") as stream:
        return sum(found.value is not None and counts_as_message(found.value) for found in read_records(stream))


def read(folder: Path) -> dict[str, JSON]:
    """Return what metadata.json holds; nothing where it cannot be read."""
    return read_metadata(folder) or {}


def rebuild(folder: Path) -> dict[str, JSON]:
    """Return the metadata as the log has them; what only metadata.json knows is kept."""
    log = folder / MESSAGES
    agent, source = SageAgent(), source_file(log)
    try:
        facts = agent.facts(source)
        session = agent.session(source, facts)
        metadata = rebuilt({"state": "active", **read(folder)}, session, facts, count_records(log))
        prompt = _last_prompt(log)
    except OSError as error:
        raise SourceUnreadable(f"{log}: {error.strerror or error}") from error
    return _in_order(metadata if prompt is None else {**metadata, LAST_PROMPT: prompt})


def _last_prompt(log: Path) -> str | None:
    prompt: str | None = None
    with log.open("rb") as stream:
        for found in read_records(stream):
            if found.value is not None and found.value.get("type") == "user":
                prompt = message_text(found.value) or prompt
    return None if prompt is None else shortened(prompt)


def _in_order(metadata: Mapping[str, JSON]) -> dict[str, JSON]:
    """Order the known keys as usual, then the others; add the number of the store's format."""
    inner = metadata.get("metadata")
    inner = dict(inner) if isinstance(inner, dict) else {}
    inner[OWN] = {"store": FORMAT, **(inner[OWN] if isinstance(inner.get(OWN), dict) else {})}
    full = {**metadata, "metadata": inner}
    known = [name for name in KEY_ORDER if name in full]
    return {name: full[name] for name in (*known, *(name for name in full if name not in KEY_ORDER))}


def write(system: System, folder: Path, metadata: Mapping[str, JSON]) -> None:
    """Replace metadata.json; the caller holds the lock of the log."""
    # As in the log, an enum is written as its value.
    replace_file(system, folder / METADATA, encode_metadata(_in_order(msgspec.to_builtins(metadata))))


def format_of(folder: Path) -> int:
    """Return the number of the store's format that the session was written in."""
    inner = read(folder).get("metadata")
    own = inner.get(OWN) if isinstance(inner, dict) else None
    number = own.get("store") if isinstance(own, dict) else None
    return number if isinstance(number, int) else FORMAT
