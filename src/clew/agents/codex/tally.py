"""The tokens of a rollout, and nothing else of it. What is not plainly one session is left to the first pass."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, Raw, UnsetType

from clew.agents.base import SourceFile, open_main
from clew.agents.codex.header import session_id, spawn_of
from clew.agents.codex.kinds import KINDS, role_of
from clew.agents.codex.lines import DAMAGED, Block, Passthrough, Payload, Spending, branch_of, texts_of
from clew.agents.codex.records import is_document
from clew.agents.codex.requests import Requests
from clew.agents.codex.twins import Twins, spelled_texts
from clew.agents.codex.words import is_injected, starts_turn
from clew.derive.calls import Calls, told
from clew.derive.usage import UsageLedger
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


class _Sink(UsageLedger):
    """A ledger that keeps calls as they come: there are many, and nobody asks for sums."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[str, tuple[str, Sequence[int | None], int]] = {}

    def note(self, call: str, model: str | None, counts: Sequence[int | None], at: int = 0) -> None:
        if call in self.calls:
            # Two requests of one name are for the careful.
            raise _Doubt
        self.calls[call] = model or "", counts, at


class _Tallier:
    """Follows the lines of a plain session as the first pass does."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source
        self._calls = Calls()
        self._ledger = _Sink()
        self._requests = Requests(self._ledger, None)
        self._twins = Twins()
        self._line = self._items = 0
        self._times: dict[int, str | None] = {}
        """When each item of the model was."""
        self._meta: Payload | None = None
        self._root = self._turn = ""
        self._model: str | None = None

    def run(self) -> Calls:
        """All lines of the source."""
        with open_main(self._source) as stream:
            for chunk, whole in read_chunks(stream):
                if not whole:
                    raise _Doubt
                self._see(_decode_lines(chunk))
        self._requests.settle()
        return self._finish()

    def _see(self, lines: list[_Line]) -> None:
        number, times = self._line, self._times
        event = self._requests.event
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
                    times[self._items] = line.timestamp
                    self._model_item(payload)
                else:
                    self._line = number
                    self._item(payload, line.timestamp)
            elif kind == "event_msg":
                if what == "token_count":
                    told = payload.info
                    if told is not None:
                        scope = self._root, self._turn
                        event(told.total_token_usage, told.last_token_usage, scope, self._model, False)
                elif what in _EVENTS:
                    self._line = number
                    self._event(payload)
            elif kind is not None:
                self._other(kind, payload)
        self._line = number

    def _finish(self) -> Calls:
        calls, meta = self._calls, self._meta
        if meta is None or not (calls.folder or meta.cwd) or self._twins.lone():
            raise _Doubt
        calls.session = session_id(self._source, meta.id)
        calls.is_agent = spawn_of(meta) is not None
        calls.folder = calls.folder or meta.cwd
        calls.branch = branch_of(meta) if self._items else None
        time = self._times.get
        calls.by_key = {
            key: [model, time(at), None, told(counts)] for key, (model, counts, at) in self._ledger.calls.items()
        }
        return calls

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

    def _model_item(self, item: _Payload) -> None:
        passed = item.internal_chat_message_metadata_passthrough
        if passed is not None and passed.turn_id:
            self._turn = passed.turn_id
        self._requests.item(self._items, self._model, item.call_id or item.id or "")

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
            self._times[self._items] = time
            self._model_item(item)
            return
        passed = item.internal_chat_message_metadata_passthrough
        if passed is not None and passed.turn_id:
            self._turn = passed.turn_id
        if role == "user":
            texts = texts_of(item.content)
            injected = is_injected(texts, passed.content_item_kinds if passed else None)
            if not injected:
                self._twins.saw_user(self._line)
            if not injected or starts_turn(texts):
                self._requests.prompt()

    def _event(self, payload: _Payload) -> None:
        kind = payload.type
        if kind == "user_message" or kind == "agent_message":
            if payload.message is not UNSET:
                self._twins.saw_event(self._line, kind, bytes(payload.message))
        elif kind == "task_started" or kind == "turn_started":
            self._turn = payload.turn_id or self._turn
