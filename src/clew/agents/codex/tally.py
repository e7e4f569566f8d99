"""The tokens of a rollout, and nothing else of it. What is not plainly one session is left to the first pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from clew.agents.base import SourceFile, open_main
from clew.agents.codex.header import session_id, spawn_of
from clew.agents.codex.kinds import KINDS, role_of
from clew.agents.codex.lines import DAMAGED, Block, Passthrough, Payload, Spending, Tokens, branch_of, texts_of
from clew.agents.codex.records import is_document
from clew.agents.codex.requests import key
from clew.agents.codex.twins import Twins, spelled_prompt, spelled_texts
from clew.agents.codex.words import is_injected, starts_turn
from clew.derive.calls import UNKNOWN, Calls, Columns
from clew.io.records import read_chunks

_MODEL_ITEMS = frozenset(kind for kind in KINDS if kind != "message" and role_of(kind, None) == "assistant")
_QUIET_ITEMS = frozenset(kind for kind in KINDS if kind.endswith("_output"))

_EVENTS = frozenset({"user_message", "agent_message", "task_started", "turn_started"})
"""Those that tell something here."""


class _Doubt(Exception):
    """The session is not plain."""


class _Payload(msgspec.Struct, gc=False):
    type: str | None = None
    id: str | None = None
    role: str | None = None
    content: str | list[Block] | None | UnsetType = UNSET
    call_id: str | None = None
    message: Raw | UnsetType = UNSET
    info: Spending | None = None
    internal_chat_message_metadata_passthrough: Passthrough | None = None
    turn_id: str | None = None
    model: str | None = None
    cwd: str | None = None
    # session_meta
    source: Raw | UnsetType = UNSET
    thread_source: Raw | UnsetType = UNSET
    parent_thread_id: str | None = None
    subagent_history_start_ordinal: int | None = None
    git: Raw | UnsetType = UNSET


class _Line(msgspec.Struct, gc=False):
    type: str | None = None
    timestamp: str | None = None
    payload: _Payload | None | UnsetType = UNSET


_decode_lines = msgspec.json.Decoder(_Line).decode_lines


def tally(source: SourceFile) -> Calls:
    """The calls of a rollout."""
    if is_document(source):
        return _carefully(source)
    try:
        return _Tallier(source).run()
    except (_Doubt, *DAMAGED):
        return _carefully(source)


def _carefully(source: SourceFile) -> Calls:
    """The calls as the first pass finds them, which is loaded only here."""
    from clew.agents.codex.timed import calls_of

    return calls_of(source)


class _Request(NamedTuple):
    """A request, and what its name is made from."""

    root: str
    turn: str
    mark: str
    total: Tokens
    last: Tokens
    model: str | None


class _Tallier:
    """Follows the lines of a plain session as the first pass does (`requests.Requests` tells the rules)."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source
        self._calls = Calls()
        self._twins = Twins()
        self._line = self._items = 0
        self._meta: Payload | None = None
        self._root = self._turn = ""
        self._model: str | None = None
        # The last item of the model: which it is, with which model, and when.
        self._mark = ""
        self._item_model: str | None = None
        self._item_time: str | None = None
        self._unclaimed = self._prompted = self._answered = False
        self._before: Tokens | None = None
        self._waiting: _Request | None = None
        self._requests: list[_Request] = []
        self._models: list[str] = []
        self._times: list[str | None] = []

    def run(self) -> Calls:
        """All lines of the source."""
        with open_main(self._source) as stream:
            for chunk, whole in read_chunks(stream):
                if not whole:
                    raise _Doubt
                self._see(_decode_lines(chunk))
        self._settle()
        return self._finish()

    def _see(self, lines: list[_Line]) -> None:
        number = self._line
        for line in lines:
            number += 1
            payload, kind = line.payload, line.type
            if payload is UNSET or payload is None:
                raise _Doubt
            what = payload.type
            if kind == "response_item":
                if what in _QUIET_ITEMS:
                    self._items += 1
                elif what in _MODEL_ITEMS:
                    self._items += 1
                    self._model_item(payload, line.timestamp)
                else:
                    self._line = number
                    self._item(payload, line.timestamp)
            elif kind == "event_msg":
                if what == "token_count":
                    if payload.info is not None:
                        self._spent(payload.info.total_token_usage, payload.info.last_token_usage)
                elif what in _EVENTS:
                    self._line = number
                    self._event(payload)
            elif kind is not None:
                self._other(kind, payload)
        self._line = number

    def _spent(self, total: Tokens | None, last: Tokens | None) -> None:
        """A token event; one that does not tell both its counts is not plain."""
        if total is None or last is None or last.input is None or last.output is None or total.total is None:
            raise _Doubt
        if total == self._before and not (self._answered and total == last):
            return
        self._before = total
        if not last.input and not last.output:
            return
        claims = self._unclaimed and self._waiting is None
        if self._waiting is not None:
            self._settle()
        self._unclaimed = self._prompted = self._answered = False
        self._waiting = _Request(self._root, self._turn, self._mark, total, last, self._model)
        if claims:
            self._settle()

    def _settle(self) -> None:
        """Put the request that waits down to the last item."""
        request = self._waiting
        if request is not None:
            self._waiting = None
            self._requests.append(request)
            self._models.append(self._item_model or request.model or "")
            self._times.append(self._item_time)

    def _finish(self) -> Calls:
        calls, meta = self._calls, self._meta
        if meta is None or not (calls.folder or meta.cwd) or self._twins.lone():
            raise _Doubt
        calls.session = session_id(self._source, meta.id)
        calls.is_agent = spawn_of(meta) is not None
        calls.folder = calls.folder or meta.cwd
        calls.branch = branch_of(meta) if self._items else None
        calls.columns = self._columns()
        return calls

    def _columns(self) -> Columns:
        names = [key(*request[:-1]) for request in self._requests]
        if len(set(names)) < len(names):
            # Two requests of one name are for the careful.
            raise _Doubt
        used = [request.last for request in self._requests]
        nothing, read = [UNKNOWN] * len(used), [tokens.cached for tokens in used]
        counts: list[Sequence[int | None]] = [
            [max(0, (tokens.input or 0) - (tokens.cached or 0) - (tokens.written or 0)) for tokens in used],
            [tokens.output for tokens in used],
            [tokens.written for tokens in used],
            read,
            nothing,
            nothing,
            [tokens.reasoning for tokens in used],
        ]
        told = [[UNKNOWN if count is None else count for count in column] for column in counts]
        return Columns(names, self._models, self._times, [None] * len(used), told)

    def _other(self, kind: str, payload: _Payload) -> None:
        if kind == "turn_context":
            self._model = payload.model or self._model
            self._turn = payload.turn_id or self._turn
            if not self._items and payload.cwd:
                self._calls.folder = payload.cwd
        elif kind == "session_meta":
            self._head(payload)
        elif kind == "request_item":
            raise _Doubt

    def _head(self, payload: _Payload) -> None:
        if self._meta is not None or self._items:
            # A second head may be another thread's, or say something new of this one.
            raise _Doubt
        told = msgspec.structs.asdict(payload)
        meta = Payload(**{name: told[name] for name in Payload.__struct_fields__ if name in told})
        if meta.subagent_history_start_ordinal is not None or meta.id is None:
            raise _Doubt
        self._meta = meta
        self._root = meta.id

    def _model_item(self, item: _Payload, time: str | None) -> None:
        passed = item.internal_chat_message_metadata_passthrough
        if passed is not None and passed.turn_id:
            self._turn = passed.turn_id
        self._mark, self._item_model, self._item_time = item.call_id or item.id or "", self._model, time
        self._unclaimed, self._answered = True, self._prompted

    def _prompt(self) -> None:
        """A turn begins."""
        self._settle()
        self._unclaimed, self._prompted, self._answered = False, True, False

    def _item(self, item: _Payload, time: str | None) -> None:
        """A message; any other item is not plain, unless it is unknown and so none."""
        if item.type != "message":
            if item.type is None or item.type in KINDS:
                raise _Doubt
            return
        self._items += 1
        role = role_of("message", item.role)
        if role == "assistant":
            self._twins.saw_assistant(self._line, spelled_texts(item.content))
            self._model_item(item, time)
            return
        passed = item.internal_chat_message_metadata_passthrough
        if passed is not None and passed.turn_id:
            self._turn = passed.turn_id
        if role == "user":
            texts = texts_of(item.content)
            injected = is_injected(texts, passed.content_item_kinds if passed else None)
            if not injected:
                self._twins.saw_user(self._line, spelled_prompt(item.content))
            if not injected or starts_turn(texts):
                self._prompt()

    def _event(self, payload: _Payload) -> None:
        kind = payload.type
        if kind == "user_message" or kind == "agent_message":
            if payload.message is not UNSET:
                self._twins.saw_event(self._line, kind, bytes(payload.message))
        elif kind == "task_started" or kind == "turn_started":
            self._turn = payload.turn_id or self._turn
