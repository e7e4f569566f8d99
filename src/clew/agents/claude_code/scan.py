"""The first pass over a transcript: names only the wanted fields, so that the rest is skipped unread."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import UNSET

from clew.agents.base import SourceFile, open_main
from clew.agents.claude_code.lines import WANTED, Block, Line, Result, Told, Usage, outline, told
from clew.agents.claude_code.prompts import human_prompt, queued_prompt
from clew.derive.facts import Facts
from clew.derive.usage import FIELDS
from clew.graph.links import MESSAGE, RESULT, SAID, SIDECHAIN, SIGNIFICANT
from clew.io.codec import loads_text
from clew.io.compress import open_source
from clew.io.records import read_chunks, read_line, read_lines, read_records
from clew.model import Subagent
from clew.model.json import JSON
from clew.model.time import is_canonical, parse_time, spell_time

SYNTHETIC = "<synthetic>"
PROGRESS = "progress"
LINKED = frozenset({"assistant", "user", "system", "attachment", PROGRESS})
_SESSION = WANTED.index("sessionId")
_NO_COUNTS = (None,) * len(FIELDS)
_SAID = MESSAGE | SAID
_ASIDE = _SAID | SIDECHAIN

_decoder = msgspec.json.Decoder(Line)
_decode, _decode_lines = _decoder.decode, _decoder.decode_lines
_DAMAGED = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)

PLAIN_TOOLS = frozenset(
    "Bash BashOutput Edit Glob Grep LS MultiEdit NotebookEdit Read TodoWrite WebFetch WebSearch Write".split()
)
"""Tools that start no agent, so that nobody need look for one in their results."""
_AGENT = b'"agentId"'
_decode_result = msgspec.json.Decoder(Result | str | list[msgspec.Raw] | None).decode

TIMES = 1000
"""So many times are looked at together."""
UNREAD = b""
"""Stands for a piece of a line that is too long: a record of which nothing is known."""
SETTLED = 64
"""After so many records nobody waits any longer for a branch, a slug or an agent's id."""


def scan(source: SourceFile, tree: bool = True, counts: bool = True) -> Facts:
    """What one pass over a transcript tells; `tree`: links between records; `counts`: tokens, models and tools."""
    scanner = Scanner(Facts(), source.path, tree, counts)
    with open_main(source) as stream:
        for chunk, whole in read_chunks(stream):
            if not whole:
                scanner.facts.records += 1
                continue
            try:
                # A record is checked for real when it is read; here only its outline counts.
                lines = _decode_lines(chunk)
            except _DAMAGED:
                scanner.read_damaged(chunk)
            else:
                scanner.see_all(list(map(told, lines)))
    return scanner.finish()


def first_claim(path: Path) -> str | None:
    """The session id that the first record with one claims; reads no further."""
    with open_source(path) as stream:
        for record in read_records(stream):
            claim = record.value.get("sessionId") if record.value else None
            if isinstance(claim, str):
                return claim
    return None


class Scanner:
    """Collects facts from lines, one after the other."""

    def __init__(self, facts: Facts, path: Path, tree: bool, counts: bool) -> None:
        self.facts = facts
        self.path = path
        self.counts = counts
        self.calls: dict[str, str] = {}
        self.plain: set[str | None] = set()
        """Calls under way that start no agent."""
        self.unsettled = SETTLED
        self.of_first: str | None = None
        self.is_unclaimed = True
        self.learned = 0
        """How often a record told something that most records repeat."""
        self.session: str | None = None
        self.of_session = 0
        self.first = self.last = ""
        self.times: list[JSON] = []
        self.tree = tree
        self.reply: str | None = None
        """The reply that the last line belongs to."""
        self.counted: tuple[str | None, Usage | None] = None, None
        """The call counted last, and what it said."""

    def finish(self) -> Facts:
        """Hand over what was kept at hand."""
        facts = self.facts
        self.widen()
        self.count_session(None)
        facts.extra["calls"] = self.calls
        for time in (self.first, self.last):
            facts.saw_time(time or None)
        return facts

    def read_damaged(self, chunk: bytes) -> None:
        """Lines of which at least one is no plain record: take that one apart the careful way."""
        for text, *_ in read_lines(io.BytesIO(chunk)):
            self.see_text(text)

    def see_text(self, text: bytes) -> None:
        """See what a line says, whatever it is."""
        try:
            line = _decode(text)
        except _DAMAGED:
            self._salvage(text)
        else:
            self.see_all([told(line)])

    def shared(self) -> dict[str, JSON]:
        """What most records repeat, as far as it is known by now."""
        facts = self.facts
        session = self.of_first if self.of_first is not None else facts.extra.get("claimed")
        return {"session_id": session, "slug": facts.slug, "agent_id": facts.extra.get("agent_id")}

    def _salvage(self, text: bytes) -> None:
        for record in read_line(text, 0, 0):
            if record.value is None:
                self.facts.records += 1
            else:
                self.see_all([told(msgspec.convert(outline(record.value, Line), Line))])

    def see_mixed(self, lines: list[Told | bytes]) -> None:
        """See records of which some are still text."""
        if bytes not in set(map(type, lines)):
            self.see_all(cast(list[Told], lines[:]))
            return
        rows: list[Told] = []
        for line in lines:
            if isinstance(line, tuple):
                rows.append(line)
                continue
            try:
                rows.append(told(_decode(line)))
            except _DAMAGED:
                self.see_all(rows)
                rows = []
                self._salvage(line)
        self.see_all(rows)

    def see_all(self, rows: list[Told]) -> None:
        """See records, in their order."""
        self.facts.records += len(rows)
        if self.is_unclaimed:
            self.claim(row[_SESSION] for row in rows)
        kinds = {row[1] for row in rows}
        if not LINKED.issuperset(kinds):
            linked = []
            for row in rows:
                if row[1] in LINKED:
                    linked.append(row)
                else:
                    self.bookkeeping(row[0], len(linked))
            rows = linked
        if rows:
            spoken = [row for row in rows if row[1] != PROGRESS] if PROGRESS in kinds else rows
            if spoken:
                lines, _, _, _, _, times, sessions, versions, *_ = zip(*spoken, strict=True)
                self.context(lines, times, sessions, versions)
            self.link(rows)

    def claim(self, sessions: Iterable[str | None]) -> None:
        """The first record that says a session's id says it for the file."""
        session = next(filter(None, sessions), None)
        if session is not None:
            self.is_unclaimed = False
            self.facts.extra["claimed"] = session
            self.learned += 1

    def context(
        self,
        lines: Sequence[Line],
        times: Iterable[JSON],
        sessions: Sequence[str | None],
        versions: Sequence[str | None],
    ) -> None:
        """Take what every chain record tells."""
        if not lines:
            return
        if sessions.count(sessions[0]) == len(sessions):
            self.count_session(sessions[0], len(sessions))
        else:
            for session in sessions:
                self.count_session(session)
        self.facts.version = next(filter(None, reversed(versions)), self.facts.version)
        if self.unsettled:
            self.settle(lines)
        self.times += filter(None, times)
        if len(self.times) >= TIMES:
            self.widen()

    def widen(self) -> None:
        """Widen the span of the session by the times kept at hand; nearly always all are spelled alike and sort."""
        times, self.times = self.times, []
        if times and _are_canonical(times):
            low, high = min(times), max(times)
            if _is_time(low) and _is_time(high):
                self.first = min(self.first or low, low)
                self.last = max(self.last, high)
                return
        for time in times:
            if not _are_canonical([time]):
                self.facts.saw_time(_canonical(time))
            elif _is_time(time):
                self.first = min(self.first or time, time)
                self.last = max(self.last, time)

    def count_session(self, session: str | None, records: int = 1) -> None:
        """Count the records of each session; those of one stand together."""
        if session == self.session:
            self.of_session += records
            return
        if self.of_first is None and session is not None:
            self.of_first = session
            self.learned += session != self.facts.extra.get("claimed")
        if self.session:
            self.facts.sessions[self.session] += self.of_session
        self.session, self.of_session = session, records

    def settle(self, lines: Sequence[Line]) -> None:
        """What the first record that says it says for all; whoever says where it was is waited for."""
        early, later = lines[: self.unsettled], lines[self.unsettled :]
        is_placed = self.learn(early)
        self.unsettled -= len(early)
        if self.unsettled or is_placed:
            return
        # One look at all up to that record: there may be many before it.
        last = next((number for number, line in enumerate(later, 1) if _is_placed(line)), len(later))
        if not (later and self.learn(later[:last])):
            self.unsettled = 1

    def learn(self, lines: Sequence[Line]) -> bool:
        """Take what is not known yet from the first of some records that says it; True once it is known where."""
        facts, extra = self.facts, self.facts.extra
        if facts.cwd is None:
            facts.cwd = next((line.cwd for line in lines if _is_placed(line)), None)
        if "cwd" not in extra and (cwd := next((line.cwd for line in lines if line.cwd), None)):
            extra["cwd"] = cwd
        if not facts.git_branch:
            facts.git_branch = next((line.gitBranch for line in lines if line.gitBranch), lines[-1].gitBranch)
        if not facts.slug and (slug := next((line.slug for line in lines if line.slug), None)):
            facts.slug = slug
            self.learned += 1
        if "agent_id" not in extra and (agent := next((line.agentId for line in lines if line.agentId), None)):
            extra["agent_id"] = agent
            self.learned += 1
        return facts.cwd is not None

    def link(self, rows: list[Told]) -> None:
        """Who follows whom, and what was said; or no more than that there are such records, as it is wanted."""
        facts = self.facts
        first = facts.messages + 1
        flags = bytearray()
        for line, kind, _, _, _, _, _, _, side, group, content, result in rows:
            if kind == "assistant" or kind == "user":
                facts.messages += 1
                flags.append(self.said(line, kind, side, group, content, result))
            elif kind == PROGRESS:
                flags.append(self.progress(line))
            else:
                facts.messages += 1
                flags.append(self.noted(line))
        if self.tree:
            _, kinds, uuids, parents, logical, times, *_ = zip(*rows, strict=True)
            seconds = [_seconds(time) if flag & SIGNIFICANT else 0.0 for time, flag in zip(times, flags, strict=True)]
            numbers: Sequence[int] = range(first, facts.messages + 1)
            if PROGRESS in kinds:
                logical = tuple(None if row[1] == PROGRESS else row[4] for row in rows)
                numbers = _numbers(flags, first)
            facts.links.extend(uuids, parents, flags, numbers, seconds, logical)
        elif self.counts:
            facts.links.extend_names([row[2] for row in rows])

    def progress(self, line: Line) -> int:
        if line.data is not None and line.data.agentId and line.parentToolUseID:
            self.calls.setdefault(line.data.agentId, line.parentToolUseID)
        return SIDECHAIN if line.isSidechain else 0

    def noted(self, line: Line) -> int:
        flags = MESSAGE | SIDECHAIN if line.isSidechain else MESSAGE
        attachment = line.attachment
        if attachment is not None and attachment.type == "queued_command" and attachment.prompt is not UNSET:
            flags |= SIGNIFICANT | SAID
            self.facts.user_messages += 1
            if queued_prompt(bytes(attachment.prompt), attachment.origin.kind if attachment.origin else None):
                self.facts.prompts += 1
        return flags

    def said(self, line: Line, kind: str, side: bool | None, group: str | None, content: Any, result: Any) -> int:
        """See what was said; the line itself is asked only for what is rare."""
        facts = self.facts
        flags = _ASIDE if side else _SAID
        if type(content) is list:
            for block in content:
                what = block.type
                if what == "tool_use":
                    if block.name in PLAIN_TOOLS:
                        self.plain.add(block.id)
                    if self.counts:
                        self.call(block)
                elif what == "tool_result":
                    call = block.tool_use_id
                    if type(call) is str:
                        if call in self.plain:
                            self.plain.discard(call)
                        elif not flags & RESULT:
                            self.answer(result, call)
                        flags |= RESULT
                        if block.is_error:
                            facts.has_errors = True
                elif what == "thinking":
                    facts.has_thinking = True
        if kind == "user":
            facts.user_messages += 1
            return flags if flags & RESULT else flags | self.user(line)
        if self.counts:
            self.count(line)
        if group and (group == self.reply or not facts.links.begins_reply(group)):
            return flags
        self.reply = group
        return flags | SIGNIFICANT

    def call(self, block: Block) -> None:
        # A block without what makes a call is none.
        if block.id is not None and block.name is not None and block.input is not UNSET:
            self.facts.tool_calls += 1
            self.facts.tools[block.name] += 1

    def answer(self, result: Result | str | list[msgspec.Raw] | msgspec.Raw | None, call: str) -> None:
        """Note which call started an agent."""
        if type(result) is msgspec.Raw:
            result = _result(result) if _AGENT in bytes(result) else None
        if type(result) is Result and result.agentId:
            self.calls[result.agentId] = call

    def user(self, line: Line) -> int:
        if line.isMeta or line.isCompactSummary:
            return 0
        if line.isSidechain:
            self.inline_agent(line)
        else:
            self.prompt(line.message.content if line.message else None, line.origin.kind if line.origin else None)
        return SIGNIFICANT

    def prompt(self, content: str | list[Block] | None, origin: str | None) -> None:
        facts = self.facts
        texts = _texts(content)
        if human_prompt(content, origin, texts):
            facts.prompts += 1
            if facts.first_prompt is None:
                facts.first_prompt = "\n".join(texts) or None

    def inline_agent(self, line: Line) -> None:
        """Before sub-agents had files of their own, each was a chain with a root inside the parent's file."""
        if not line.parentUuid and not line.agentId and line.uuid:
            self.facts.subagents.append(Subagent(root_uuid=line.uuid))

    def count(self, line: Line) -> None:
        """Count the tokens of a reply."""
        facts, message = self.facts, line.message
        if message is None or message.model == SYNTHETIC:
            return
        if message.model:
            facts.models[message.model] += 1
        usage = message.usage
        if message.id and usage is not None and self.counted == (message.id, usage):
            return
        counts = usage.counts() if usage is not None else _NO_COUNTS
        if counts != _NO_COUNTS:
            self.counted = message.id, usage
        elif line.usage:
            counts = line.usage.counts()
        if counts != _NO_COUNTS:
            # The lines of one call repeat its counts; one that says no call is a call of its own.
            call = message.id or line.uuid or f"{self.path}:{facts.messages}"
            facts.ledger.note(call, message.model, counts, facts.messages)

    def bookkeeping(self, line: Line, linked: int) -> None:
        """See a record that is no part of the conversation, behind so many that are and are not linked yet."""
        facts = self.facts
        if line.type == "summary" and line.summary and line.leafUuid:
            facts.summaries[line.leafUuid] = line.summary
        elif line.type == "ai-title" and line.aiTitle:
            facts.titles["ai"] = line.aiTitle
        elif line.type == "custom-title" and line.customTitle:
            facts.titles["custom"] = line.customTitle
        elif line.type == "last-prompt" and line.leafUuid:
            facts.leaf_uuid, facts.leaf_seen = line.leafUuid, len(facts.links) + linked


def _is_placed(line: Line) -> bool:
    """True for a record that says where the session was; a sub-agent may be elsewhere."""
    return bool(line.cwd) and not line.isSidechain


def _numbers(flags: bytes | bytearray, first: int) -> list[int]:
    """The indices of messages; 0 for records that are none."""
    index = count(first)
    return [next(index) if flag & MESSAGE else 0 for flag in flags]


def _are_canonical(times: list[JSON]) -> bool:
    """True for texts like 2026-01-11T22:00:00.000Z, as far as that can be seen at a glance."""
    if set(map(type, times)) != {str} or set(map(len, times)) != {24}:
        return False
    text = "".join(times)
    return set(text[10::24]) == {"T"} and set(text[23::24]) == {"Z"}


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _seconds(time: JSON) -> float:
    try:
        stamp = datetime.fromisoformat(time)
        return stamp.timestamp() if stamp.tzinfo is not None else stamp.replace(tzinfo=UTC).timestamp()
    except (TypeError, ValueError):
        parsed = parse_time(time)
        return parsed.timestamp() if parsed is not None else 0.0


def _canonical(time: JSON) -> str | None:
    if isinstance(time, str) and is_canonical(time):
        return time
    stamp = parse_time(time)
    return spell_time(stamp) if stamp is not None else None


def _result(raw: msgspec.Raw) -> Result | str | list[msgspec.Raw] | None:
    """A result; None where what is wanted of it is no text."""
    try:
        found: Result | str | list[msgspec.Raw] | None = _decode_result(raw)
    except _DAMAGED:
        return None
    return found


def _texts(content: str | list[Block] | None) -> list[str]:
    """The texts of a prompt."""
    if isinstance(content, str):
        return [content]
    raws = [block.text for block in content or () if block.type == "text" and block.text is not UNSET]
    # The structs of the second pass hold text that is decoded.
    texts = [loads_text(raw) if isinstance(raw, msgspec.Raw) else raw for raw in raws]
    return [text for text in texts if isinstance(text, str)]
