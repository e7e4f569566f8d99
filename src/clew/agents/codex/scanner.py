"""The first pass over the lines of a rollout."""

from __future__ import annotations

import io
import re
from array import array
from collections import Counter
from datetime import datetime
from itertools import pairwise

from msgspec import UNSET, Raw

from clew.agents.base import SourceFile, open_main
from clew.agents.codex.inherit import Copied
from clew.agents.codex.lines import (
    DAMAGED,
    Line,
    Payload,
    Tokens,
    branch_of,
    decode,
    is_record,
    item_of,
    lenient,
    meta_of,
    texts_of,
)
from clew.agents.codex.outcome import outcome_of_line, outcome_of_raw
from clew.agents.codex.outline import Outline
from clew.agents.codex.records import head_of, is_document, records_of
from clew.agents.codex.requests import Requests
from clew.agents.codex.shape import NAMES
from clew.agents.codex.tables import role_of
from clew.agents.codex.thread import Thread
from clew.agents.codex.twins import Twins, spelled_prompt, spelled_texts
from clew.agents.codex.words import is_human, is_injected, starts_turn
from clew.derive.facts import Facts
from clew.graph.links import MESSAGE, RESULT, SAID, SIGNIFICANT
from clew.io.codec import NOT_JSON, loads, loads_text
from clew.io.records import read_chunks, read_line
from clew.model import Subagent
from clew.model.time import parse_time, spell_time

_SPAWN = "spawn_agent"
_SHARES = 8
_ANSWERED = MESSAGE | SAID | RESULT
_SPOKEN = MESSAGE | SAID | SIGNIFICANT

# The beginnings of the lines that are most of a rollout. They tell all that this pass wants to know of them; what the
# rest of such a line holds is looked at when it is read.
_BEGINS = re.compile(
    rb'\{"timestamp":"([ !#-~]{24})",(?:"ordinal":\d+,)?"type":"'
    # An event that bears the name of an item is none.
    rb'(?:response_item|event_msg(?!","payload":\{"type":"(?:reasoning|function_call_output|custom_tool_call_output)"))'
    rb'","payload":\{"type":"(\w+)"'
    rb'(?:,"call_id":"([ !#-\[\]-~]+)","output":")?'
).match
_BEGUN = b'{"timestamp":"'
"""Inside a line, another record that was glued to the first: in what is said, the quotes would be escaped."""
_SILENT = frozenset(
    b"agent_reasoning agent_reasoning_raw_content task_complete turn_complete item_completed exec_command_end "
    b"patch_apply_end mcp_tool_call_end web_search_end image_generation_end view_image_tool_call ghost_snapshot".split()
)
"""Lines that only have to be counted."""
_RESULTS = frozenset((b"function_call_output", b"custom_tool_call_output"))


class Scanner:
    """Collects facts from lines, one after the other; without `counts` no tokens, models and tools."""

    def __init__(self, source: SourceFile, outline: Outline, counts: bool = True) -> None:
        self.facts = Facts()
        self.outline = outline
        self.thread = Thread(outline.thread)
        self.twins = Twins()
        self._source = source
        self._ids = array("I")
        self._counts = counts
        self.requests = Requests(self.facts.ledger if counts else None, outline.spent)
        self.copied = Copied(source)
        self._turn = ""
        self._root = outline.thread
        self.line = 0
        self._first, self._last = "~", ""
        self._undated: list[tuple[int, list[str]]] = []
        self.awaited: dict[str, str | None] = {}
        """Calls whose results tell of a sub-agent."""
        self._agents: dict[str, tuple[str | None, str | None]] = {}

    def run(self) -> Facts:
        """All lines of the source."""
        if is_document(self._source):
            return self._run_document()
        with open_main(self._source) as stream:
            for chunk, whole in read_chunks(stream):
                if not whole:
                    self.skip_piece(chunk)
                    continue
                for text in io.BytesIO(chunk):
                    self.line += 1
                    if not self._glance(text):
                        self.look(text)
        return self.finish()

    def _run_document(self) -> Facts:
        for record in records_of(self._source):
            self.line = record.line
            if record.value is None:
                self.facts.records += 1
            else:
                self.see(lenient(head_of(record.value) or record.value))
        return self.finish()

    def skip_piece(self, chunk: bytes) -> None:
        """Count a piece of a line that is too long."""
        self.facts.records += 1
        self.line += chunk.endswith(b"\n")

    def _glance(self, text: bytes) -> bool:
        """See a line of which the beginning tells enough; False for any other."""
        begins = _BEGINS(text)
        if begins is None or self.copied.active or not text.endswith(b"}}\n") or text.find(_BEGUN, 1) > 0:
            return False
        if not is_record(text):
            return False
        time, kind, call = begins.groups()
        if kind in _SILENT:
            self.facts.records += 1
            self.outline.last_line_time = time.decode(errors="replace")
        elif call is not None and kind in _RESULTS:
            if b'"id":"' in text or (self.awaited and call.decode() in self.awaited):
                return False
            self.facts.records += 1
            self._add(None, "user", False, False, time.decode(), _ANSWERED)
            if not self.facts.has_errors:
                self.facts.has_errors = outcome_of_line(text, begins.end()).is_error is True
        elif kind == b"reasoning" and b'"id":"' not in text:
            self.facts.records += 1
            self.facts.has_thinking = True
            self._add(None, "assistant", False, False, time.decode(), _SPOKEN)
            self.requests.item(self.facts.messages, self.thread.model, "")
        else:
            return False
        return True

    def look(self, text: bytes) -> None:
        """See a line of any kind."""
        try:
            self.see(decode(text))
        except DAMAGED:
            for record in read_line(text, 0, 0):
                if record.value is None:
                    self.facts.records += 1
                else:
                    self.see(lenient(record.value))

    def finish(self) -> Facts:
        """The facts, once all lines were seen."""
        facts, outline = self.facts, self.outline
        self.requests.settle()
        self._date()
        for time in (self._first, self._last):
            facts.saw_time(time if len(time) == 24 else None)
        facts.leaf_uuid = self.thread.last or ("" if self.thread.was_rolled_back else None)
        facts.links.is_derived = True
        facts.extra["outline"] = outline
        outline.cwd = self.thread.surroundings.get("cwd")
        for agent, (name, call) in self._agents.items():
            facts.subagents.append(Subagent(session_id=agent, agent_id=name, tool_id=call))
        return facts

    def repeated(self) -> frozenset[str]:
        """The ids that stand on several items."""
        if self.outline.repeated:
            return self.outline.repeated
        suspects: set[int] = set()
        # Looked at in shares, so that they are not all numbers of Python's own at once.
        for share in range(_SHARES):
            ordered = sorted(mark for mark in self._ids if mark % _SHARES == share)
            suspects.update(one for one, other in pairwise(ordered) if one == other)
        links = self.facts.links
        named = (links.uuid(node) for node in range(len(links))) if suspects else ()
        counts = Counter(name for name in named if name is not None and _mark(name) in suspects)
        return frozenset(name for name, count in counts.items() if count > 1)

    def see(self, line: Line) -> None:
        """See a record."""
        self.facts.records += 1
        if self.copied.active:
            self.copied.see(self.line, line)
            self.outline.inherited = self.copied.boundary
        kind, item = item_of(line)
        if kind is not None:
            self._message(kind, item, line)
        elif line.payload:
            self._other(line, line.payload)
        elif (meta := meta_of(line)) is not None:
            self._meta(meta)
        if line.payload and line.timestamp:
            self.outline.last_line_time = line.timestamp

    # Messages

    def _message(self, kind: str, item: Payload, line: Line) -> None:
        facts = self.facts
        role = role_of(kind, item.role)
        passed = item.internal_chat_message_metadata_passthrough
        injected, begins = role == "system", kind == "agent_message"
        if role == "user" and kind == "message":
            texts = texts_of(item.content)
            injected = is_injected(texts, passed.content_item_kinds if passed else None)
            begins = not injected or starts_turn(texts)
            if injected:
                role = "system"
                self.thread.read_context(texts)
            else:
                self._prompt(item, texts)
                self.twins.saw_user(self.line, spelled_prompt(item.content))
        if passed is not None and passed.turn_id:
            self._turn = passed.turn_id
        flags = MESSAGE if role == "system" else _ANSWERED if kind.endswith("_output") else _SPOKEN
        self._add(item.id, role, injected, begins, line.timestamp if line.payload else None, flags)
        if kind == "message":
            if role == "assistant":
                self.twins.saw_assistant(self.line, spelled_texts(item.content))
        elif kind == "reasoning":
            facts.has_thinking = True
        elif role == "user":
            self._result(kind, item)
        else:
            self._call(kind, item)
        if role == "assistant":
            self.requests.item(facts.messages, self.thread.model, item.call_id or item.id or "")

    def _add(self, own: str | None, role: str, injected: bool, begins: bool, time: str | None, flags: int) -> None:
        facts, thread = self.facts, self.thread
        facts.messages += 1
        if own:
            self._ids.append(_mark(own))
        if begins:
            self.requests.prompt()
        uuid = thread.uuid(own, self.line, self.outline.repeated)
        parent = thread.follow(uuid, injected, begins)
        if role == "user":
            facts.user_messages += 1
        elif role == "assistant" and self._counts and thread.model:
            facts.models[thread.model] += 1
        self._node(uuid, parent, flags, time)

    def said(
        self, uuids: list[str], parents: list[str | None], flags: bytearray, times: list[str], ids: list[str]
    ) -> None:
        """Note messages that were read already, and that nobody put in, with the ids that some items had."""
        facts = self.facts
        first = facts.messages + 1
        facts.messages += len(uuids)
        facts.records += len(uuids)
        self._ids.extend(map(_mark, ids))
        self.thread.follow(uuids[-1], False, False)
        if self.thread.has_news:
            self._surroundings()
        # Times only tell branches apart, so they are looked at later, if ever.
        self._undated.append((len(facts.links), times))
        nothing = [None] * len(uuids)
        facts.links.extend(uuids, parents, flags, range(first, facts.messages + 1), bytes(len(uuids)), nothing)
        self._span(times)

    def _span(self, times: list[str]) -> None:
        """Widen the span of the session; what only looks like a time does not."""
        least, most = min(times), max(times)
        if parse_time(least) is None or parse_time(most) is None:
            for time in times:
                self._seconds(time)
            return
        self._first, self._last = min(self._first, least), max(self._last, most)

    def _date(self) -> None:
        """Look at the times of messages where there may be branches."""
        for first, times in self._undated if self.thread.was_rolled_back else ():
            for node, time in enumerate(times, first):
                self.facts.links.times[node] = self._seconds(time)
        self._undated.clear()

    def asked(self, line: int, spelled: Raw) -> None:
        """Note that a message that was read already is a prompt: one text."""
        self.requests.prompt()
        self.twins.saw_user(line, frozenset((bytes(spelled),)))
        if self.facts.first_prompt is None and is_human(texts := [loads_text(spelled)], False):
            self.facts.first_prompt = texts[0] or None

    def _node(self, uuid: str, parent: str | None, flags: int, time: str | None) -> None:
        if self.thread.has_news:
            self._surroundings()
        seconds = self._seconds(time) if time is not None else 0.0
        self.facts.links.add(uuid, parent, flags, self.facts.messages, seconds)

    def _surroundings(self) -> None:
        facts = self.facts
        news = self.thread.news()
        facts.cwd = facts.cwd or news.get("cwd")
        facts.git_branch = facts.git_branch or news.get("git_branch")
        facts.version = news.get("agent_version") or facts.version

    def _seconds(self, time: str) -> float:
        """Note the time of a message; returns it in seconds."""
        if len(time) != 24 or time[10] != "T" or time[23] != "Z":
            stamp = parse_time(time)
            if stamp is not None:
                self.facts.saw_time(spell_time(stamp))
            return stamp.timestamp() if stamp is not None else 0.0
        try:
            stamp = datetime.fromisoformat(time)
        except ValueError:
            return 0.0
        if time > self._last:
            self._last = time
        if time < self._first:
            self._first = time
        return stamp.timestamp()

    def _prompt(self, item: Payload, texts: list[str]) -> None:
        facts = self.facts
        attached = isinstance(item.content, list) and any(
            block.type in ("input_image", "input_audio") for block in item.content
        )
        if is_human(texts, attached):
            facts.prompts += 1
            if facts.first_prompt is None:
                facts.first_prompt = "\n".join(texts) or None

    def _call(self, kind: str, item: Payload) -> None:
        facts = self.facts
        facts.tool_calls += 1
        name = NAMES.get(kind) or item.name
        if name and self._counts:
            facts.tools[name] += 1
        if name == _SPAWN and item.call_id:
            self.awaited[item.call_id] = None

    def _result(self, kind: str, item: Payload) -> None:
        if kind == "agent_message" or item.output is UNSET:
            return
        if outcome_of_raw(item.output).is_error:
            self.facts.has_errors = True
        if item.call_id in self.awaited:
            self._spawned(item.call_id, item.output)

    def _spawned(self, call: str, output: Raw) -> None:
        """A call that started a sub-agent tells its id in its result."""
        try:
            told = loads(loads_text(output))
        except (*NOT_JSON, TypeError):
            return
        if isinstance(told, dict) and isinstance(told.get("agent_id"), str):
            name = told.get("nickname")
            self._agents.setdefault(told["agent_id"], (name if isinstance(name, str) else None, call))

    # Everything else

    def _other(self, line: Line, payload: Payload) -> None:
        kind = line.type
        if kind == "event_msg":
            self._event(payload, line)
        elif kind == "turn_context":
            self.thread.model = payload.model or self.thread.model
            self.thread.effort = payload.effort
            self.thread.surround(cwd=payload.cwd)
            self._turn = payload.turn_id or self._turn
        elif kind == "session_meta":
            self._meta(payload)
        elif kind == "inter_agent_communication":
            self.thread.begin_turn()

    def _event(self, payload: Payload, line: Line) -> None:
        kind = payload.type
        if kind == "token_count":
            self._tokens(payload)
        elif kind == "user_message" or kind == "agent_message":
            self._words(kind, payload, line)
        elif kind == "thread_rolled_back":
            self.thread.roll_back(payload.num_turns)
        elif kind == "task_started" or kind == "turn_started":
            self._turn = payload.turn_id or self._turn
        elif kind == "collab_agent_spawn_end" and payload.new_thread_id:
            self._agents[payload.new_thread_id] = (payload.new_agent_nickname, payload.call_id)
        elif kind == "sub_agent_activity" and payload.agent_thread_id:
            self._agents.setdefault(payload.agent_thread_id, (payload.agent_path, payload.event_id))
        elif kind == "thread_name_updated" and payload.thread_name:
            self.facts.titles["name"] = payload.thread_name

    def _words(self, kind: str, payload: Payload, line: Line) -> None:
        """An event that tells what was said: nearly always an item says it too."""
        if payload.message is UNSET:
            return
        if self.line not in self.outline.lone:
            self.twins.saw_event(self.line, kind, bytes(payload.message))
            return
        text = loads_text(payload.message)
        texts = [text] if isinstance(text, str) else []
        if kind == "agent_message":
            self._add(None, "assistant", False, False, line.timestamp, _SPOKEN)
            self.requests.item(self.facts.messages, self.thread.model, "")
            return
        if is_human(texts, False):
            self.facts.prompts += 1
            self.facts.first_prompt = self.facts.first_prompt or "\n".join(texts) or None
        self._add(None, "user", False, True, line.timestamp, _SPOKEN)

    def _tokens(self, payload: Payload) -> None:
        if payload.info is not None:
            self.spent(payload.info.total_token_usage, payload.info.last_token_usage)

    def spent(self, total: Tokens | None, last: Tokens | None) -> None:
        """See what a token event tells."""
        scope = (self._root, self._turn)
        self.requests.event(total, last, scope, self.thread.model, self.line <= self.copied.boundary)

    def _meta(self, meta: Payload) -> None:
        outline = self.outline
        if outline.meta is None:
            outline.meta = meta
            self._root = meta.id or self._root
            self.copied.begin(meta)
        elif meta.id != outline.meta.id and meta.id:
            # The head of another thread: what follows was copied from it.
            outline.parents.append(meta.id)
            if not self.facts.messages:
                self._root = meta.id
                self.copied.found(meta.id, self.line)
                outline.inherited = self.copied.boundary
            return
        self.thread.surround(
            cwd=meta.cwd, git_branch=branch_of(meta), agent_version=meta.cli_version, user_type=meta.originator
        )


def _mark(name: str) -> int:
    """A small number that tells most ids apart."""
    return hash(name) & 0xFFFFFFFF
