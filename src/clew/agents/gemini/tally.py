"""The tokens of a chat, and nothing else of it. Chats in which something was taken back are left to the first pass."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, UnsetType

from clew.agents.base import SourceFile, open_main
from clew.agents.gemini import locate
from clew.agents.gemini.terms import CHANCE, HEAD, PATCH, REWIND, Joined, is_document, usage_of
from clew.agents.jsondoc import begin_document
from clew.derive.calls import UNKNOWN, Calls
from clew.derive.collect import SYNTHETIC
from clew.derive.usage import FIELDS
from clew.io.codec import NOT_JSON
from clew.io.records import read_lines

_SPEAKER = "gemini"


class _Tokens(msgspec.Struct, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    input: int | UnsetType = UNSET
    output: int | UnsetType = UNSET
    cached: int | UnsetType = UNSET
    thoughts: int | UnsetType = UNSET
    tool: int | UnsetType = UNSET
    total: int | UnsetType = UNSET


class _Message(msgspec.Struct, gc=False):
    id: str
    type: str | None = None
    timestamp: str | None = None
    tokens: _Tokens | None = None
    model: str | None = None


class _Document(msgspec.Struct, gc=False):
    messages: list[_Message]
    sessionId: str
    kind: str | None = None


class _Patch(msgspec.Struct, gc=False):
    messages: Raw | UnsetType = UNSET


class _Line(msgspec.Struct, gc=False):
    id: str | UnsetType = UNSET
    type: str | None = None
    timestamp: str | None = None
    tokens: _Tokens | None = None
    model: str | None = None
    sessionId: str | None = None
    kind: str | None = None
    messages: Raw | UnsetType = UNSET
    patch: _Patch | None = msgspec.field(default=None, name=PATCH)
    rewind: Raw | UnsetType = msgspec.field(default=UNSET, name=REWIND)


_decode_document = msgspec.json.Decoder(_Document).decode
_decode_line = msgspec.json.Decoder(_Line).decode
_UNUSUAL = (*NOT_JSON, UnicodeDecodeError)


class _Doubt(Exception):
    """The chat is not one that only went forward."""


def tally(source: SourceFile) -> Calls:
    """The calls of a chat."""
    is_plain = not source.parts and locate.saved_tag(source.path) is None and not locate.is_log(source.path)
    try:
        return _quick(source) if is_plain else _general(source)
    except (_Doubt, *_UNUSUAL):
        return _general(source)


def _quick(source: SourceFile) -> Calls:
    is_json = locate.plain_name(source.path.name).endswith(".json")
    with open_main(source) as stream:
        head = stream.read(HEAD)
        if is_document(head, is_json):
            raw, is_whole = begin_document(stream, head)
            if not is_whole:
                raise _Doubt
            return _of_document(source, _decode_document(raw))
        return _of_lines(source, Joined(head, stream))


def _of_document(source: SourceFile, document: _Document) -> Calls:
    calls = _begun(source, document.sessionId, document.kind)
    names = set()
    for message in document.messages:
        names.add(message.id)
        if message.tokens is not None:
            _note(calls, message.id, message)
    if len(names) < len(document.messages):
        raise _Doubt
    return calls


def _of_lines(source: SourceFile, stream: Joined) -> Calls:
    """The calls of an event log; a message that is written anew is what it says last."""
    session, kind = None, None
    said: dict[str, _Line] = {}
    for text, _, _, whole in read_lines(stream):  # type: ignore[arg-type]
        if not whole:
            raise _Doubt
        line = _decode_line(text)
        is_told = line.id is not UNSET
        if line.rewind is not UNSET or (not is_told and line.messages is not UNSET):
            raise _Doubt
        if line.patch is not None and line.patch.messages is not UNSET:
            raise _Doubt
        if line.id is not UNSET:
            said[line.id] = line
        else:
            session, kind = session or line.sessionId, line.kind or kind
    if session is None:
        raise _Doubt
    calls = _begun(source, session, kind)
    for name, line in said.items():
        _note(calls, name, line)
    return calls


def _begun(source: SourceFile, session: str, kind: str | None) -> Calls:
    calls = Calls()
    calls.session = session
    calls.is_agent = kind == "subagent" or locate.parent_folder(source.path) is not None
    return calls


def _note(calls: Calls, name: str, message: _Message | _Line) -> None:
    tokens = message.tokens
    if tokens is None or message.model == SYNTHETIC:
        return
    if message.type != _SPEAKER:
        raise _Doubt
    counts = _counts(tokens)
    if counts is not None:
        key = name if CHANCE.fullmatch(name) else f"{calls.session} {name}"
        calls.note(key, message.model, message.timestamp, None, counts)


def _counts(tokens: _Tokens) -> list[int] | None:
    """The counts in the order of FIELDS; what is not told plainly goes the way of all others."""
    given, said, cached, thoughts = tokens.input, tokens.output, tokens.cached, tokens.thoughts
    if (
        (type(given) is int and type(said) is int and type(cached) is int and type(thoughts) is int)
        and min(given, said, cached, thoughts) >= 0
        and given + said > 0
    ):
        return [max(0, given - cached), said + thoughts, UNKNOWN, cached, UNKNOWN, UNKNOWN, thoughts]
    usage = usage_of(msgspec.structs.asdict(tokens))
    return [usage.get(field, UNKNOWN) for field in FIELDS] if usage else None


def _general(source: SourceFile) -> Calls:
    """The calls as the first pass finds them, which is loaded only here."""
    from clew.agents.gemini.replay import replay
    from clew.agents.gemini.scan import reading_of
    from clew.agents.gemini.steps import Steps

    calls = Calls()
    calls.session = locate.session_id(source)
    calls.is_agent = locate.parent_folder(source.path) is not None
    for unit in reading_of(source, replay(Steps(source))):
        metadata = unit.value.get("metadata") or {} if unit.is_message else {}
        usage, model = metadata.get("token_usage"), (metadata.get("model") or {}).get("name")
        if usage and model != SYNTHETIC:
            name = unit.value["uuid"]
            key = name if CHANCE.fullmatch(name) else f"{calls.session} {name}"
            counts = [usage.get(field, UNKNOWN) for field in FIELDS]
            calls.note(key, model, unit.value.get("timestamp"), None, counts)
    return calls
