"""Lines by their letters: where the usual ones have what, and whether a piece is spelled as we would spell it.

Every pattern takes only letters that need no escape, and every value between two patterns is proved to be one JSON
value by itself. So what fits is the whole line, and nothing of it has to be spelled again to be sure.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec
from msgspec import Raw

from clew.io.codec import NOT_JSON, dumps, loads

DAMAGED = (*NOT_JSON, msgspec.ValidationError, UnicodeEncodeError)
_PLAIN = rb"[ !#-\[\]-~]"
_KEPT = (
    rb'((?:,"internal_chat_message_metadata_passthrough":\{[^{}\\]*\})?(?:,"metadata":\{[^{}\\]*\})?)\}\}\n'
    # The end of the line, and not one more line feed.
    rb"\Z"
)
_PASSED = b',"internal_chat_message_metadata_passthrough":{'
_METADATA = b',"metadata":{'
_QUOTE = ord('"')
_TAIL = 1000
"""The keys that any item may end with are looked for in so many bytes."""
_LINE = rb'\{"timestamp":"(PLAIN{10}TPLAIN{12}Z)",(?:"ordinal":(0|[1-9]\d{0,15}),)?"type":'
_ITEM = _LINE + rb'"response_item","payload":\{"type":'
_ID = rb'(?:,"id":"(PLAIN+)")?'


def _match(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern.replace(b"PLAIN", _PLAIN))


# All of them tell time and ordinal first.
EVENT = _match(_LINE + rb'"event_msg","payload":(?=\{)').match
STATE = _match(_LINE + rb'"(turn_context|session_meta)","payload":(?=\{)').match
CALL = _match(
    _ITEM + rb'"function_call"' + _ID + rb',"name":"(PLAIN*)"(?:,"call_id":"(PLAIN*)")?,"arguments":(?=")'
).match
CALL_BEHIND = _match(rb',"call_id":"(PLAIN*)"').match
CUSTOM = _match(
    _ITEM + rb'"custom_tool_call"' + _ID + rb'(?:,"status":"(PLAIN*)")?'
    rb',"call_id":"(PLAIN*)","name":"(PLAIN*)","input":(?=")'
).match
RESULT = _match(
    _ITEM + rb'"(function_call|custom_tool_call)_output"' + _ID + rb',"call_id":"(PLAIN*)","output":(?=")'
).match
SPOKEN = _match(
    _ITEM + rb'"message"' + _ID + rb',"role":"(?:(assistant)","content":\[\{"type":"output_text"|'
    rb'user","content":\[\{"type":"input_text"),"text":(?=")'
).match
SPOKEN_END = _match(rb'\}\](?:,"phase":"(PLAIN*)")?' + _KEPT).match
REASONING = _match(_ITEM + rb'"reasoning"' + _ID + rb',"summary":(?=\[)').match
ONE_THOUGHT = b'[{"type":"summary_text","text":"'
SUMMARY_END = re.compile(rb'\](,"content":null)?(,"encrypted_content":(?="))?').match
_kept = re.compile(_KEPT).match

_ESCAPE = re.compile(rb"\\[u/]").search
_ODD = re.compile(rb"\\(?:/|u(?!00(?:0[0-7bef]|1[0-9a-f])))").search
"""An escape that we would not write."""

_one = msgspec.json.Decoder(Raw).decode
_text = msgspec.json.Decoder(str).decode


class Thought(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: str
    text: Raw


thoughts_of = msgspec.json.Decoder(list[Thought]).decode


def is_thought(thought: Thought) -> bool:
    """True for a thought that is text."""
    return thought.type == "summary_text" and memoryview(thought.text)[0] == _QUOTE


def is_plain(text: bytes) -> bool:
    """True when the strings in a text are spelled as we spell them, if they are strings."""
    at = text.find(b"\\")
    if at >= 0 and _ESCAPE(text, at) and _ODD(text, at):
        return False
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_string(text: bytes) -> bool:
    """True for one JSON string and no space around it; how its letters are spelled is not asked."""
    try:
        _one(text)
    except DAMAGED:
        return False
    return text.startswith(b'"') and text.endswith(b'"')


def is_ours(text: bytes) -> bool:
    """True for a JSON value that we would spell like this."""
    try:
        return dumps(loads(text)) == text
    except DAMAGED:
        return False


is_known = lru_cache(256)(is_ours)
"""The same for what comes again and again."""


def read_string(text: bytes) -> str | None:
    """The string that a text spells; None where we would spell it in another way."""
    try:
        string = _text(text)
        return string if dumps(string) == text else None
    except DAMAGED:
        return None


def kept_keys(text: bytes) -> tuple[int, bytes] | None:
    """Where the keys begin that any item may end with, and what they say; None where the end is another one."""
    least = max(0, len(text) - _TAIL)
    at = text.rfind(_PASSED, least)
    found = _kept(text, at if at >= 0 else text.rfind(_METADATA, least))
    if found is None:
        return None
    kept = found[1][1:]
    return (found.start(), kept) if is_known(b"{" + kept + b"}") else None
