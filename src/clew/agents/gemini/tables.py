"""Gemini CLI's records, key by key. Keys listed as known stay in the rest; all others are reported as unknown."""

from __future__ import annotations

from collections.abc import Mapping

from clew.agents.gemini.parts import Content
from clew.agents.gemini.results import Result
from clew.agents.jsonl import Form
from clew.agents.mapping import (
    ANY,
    MISSING,
    TEXT,
    Context,
    Fixed,
    Kind,
    Leaf,
    Nest,
    Part,
    Sections,
    Table,
    Time,
    Values,
    place,
)
from clew.model.json import JSON

PATCH, REWIND, MESSAGES, HISTORY = "$set", "$rewindTo", "messages", "history"
THOUGHTS, CALLS, STATUS = "thoughts", "calls", "status"
"""Slots that only live between the tables and the fold."""
PLACE = "place"
"""Type of the record that stands where the last version of a message stands, if that was shown earlier."""


class Listing(Part):
    """A list of objects that each become a block of one kind; an empty list, or one with anything else, is kept."""

    def __init__(self, key: str, slot: str, kind: Kind) -> None:
        self.key, self.kind = key, kind
        self.section, self.name = place(slot)

    def take(self, value: JSON, out: Sections, rest: Values, context: Context) -> None:
        blocks = [self.kind.take(item, context) if type(item) is dict else None for item in _items(value)]
        if not blocks or None in blocks:
            rest[self.key] = value
        else:
            out[self.section][self.name] = blocks

    def give(self, sections: Sections, rest: Values, context: Context) -> JSON:
        blocks = sections.get(self.section, {}).get(self.name)
        return [self.kind.give(block, context) for block in blocks] if blocks else MISSING


def _items(value: JSON) -> list[JSON]:
    return value if type(value) is list else []


def usage_of(tokens: Mapping[str, JSON]) -> dict[str, int]:
    """The counts in the model's terms; an object without any count above zero says nothing."""
    counts = {name: count for name, count in tokens.items() if type(count) is int and count >= 0}
    if not any(counts.values()):
        return {}
    usage: dict[str, int] = {}
    cached, thoughts = counts.get("cached"), counts.get("thoughts")
    if "input" in counts:
        usage["input_tokens"] = max(0, counts["input"] - (cached or 0))
    if "output" in counts:
        usage["output_tokens"] = counts["output"] + (thoughts or 0)
    if cached is not None:
        usage["cache_read_tokens"] = cached
    if thoughts is not None:
        usage["reasoning_tokens"] = thoughts
    return usage


class Tokens(Part):
    """Counts of one request: cached input is part of `input`, thoughts are no part of `output`."""

    key = "tokens"

    def take(self, value: JSON, out: Sections, rest: Values, context: Context) -> None:
        rest[self.key] = value
        if type(value) is dict:
            out["usage"].update(usage_of(value))

    def give(self, sections: Sections, rest: Values, context: Context) -> JSON:
        return MISSING


class Claimed(Part):
    """The session a message says it belongs to. The client does not write it; tools around it do."""

    key = "sessionId"

    def take(self, value: JSON, out: Sections, rest: Values, context: Context) -> None:
        context.own["session"] = value

    def give(self, sections: Sections, rest: Values, context: Context) -> JSON:
        return context.own.get("session", MISSING)


_COMMON = (Leaf("id", "uuid", TEXT), Time("timestamp", "timestamp"))
_SPOKEN = (Content("content"), Claimed())

THOUGHT = Kind(
    "thinking",
    Table("thought", Leaf("description", "thinking", TEXT), known=["subject", "timestamp"]),
    ("thinking",),
)
CALL = Kind(
    "tool_use",
    Table(
        "call",
        Leaf("id", "tool_id", TEXT),
        Leaf("name", "tool_name", TEXT),
        Leaf("args", "input", ANY),
        Result(),
        Leaf("status", STATUS, TEXT),
        known=[
            "timestamp",
            "resultDisplay",
            "displayName",
            "description",
            "renderOutputAsMarkdown",
            "agentId",
            "error",
        ],
    ),
)

USER = Form(Table("user", *_COMMON, Fixed("type", "user"), *_SPOKEN, known=["displayContent"]), "user")
GEMINI = Form(
    Table(
        "gemini",
        *_COMMON,
        Fixed("type", "gemini"),
        *_SPOKEN,
        Listing("thoughts", THOUGHTS, THOUGHT),
        Tokens(),
        Leaf("model", "model.name", TEXT),
        Listing("toolCalls", CALLS, CALL),
        known=["displayContent"],
    ),
    "assistant",
)
NOTICE = Form(Table("notice", *_COMMON, *_SPOKEN, known=["type", "displayContent"]), "system")
STRANGE = Form(NOTICE.table, "system", "unknown")
TURN = {
    "user": Form(Table("turn.user", Fixed("role", "user"), Content("parts")), "user"),
    "model": Form(Table("turn.model", Fixed("role", "model"), Content("parts")), "assistant"),
}
"""A saved chat has turns as the API knows them."""
_LOGGED = (Time("timestamp", "timestamp"), Claimed())
PROMPT = Form(Table("prompt", *_LOGGED, Fixed("type", "user"), Content("message"), known=["messageId"]), "user")
REPLY = Form(Table("reply", *_LOGGED, Fixed("type", "gemini"), Content("message"), known=["messageId"]), "assistant")
REMARK = Form(Table("remark", *_LOGGED, Content("message"), known=["messageId", "type"]), "system", "unknown")
_ENTRIES = {"user": PROMPT, "gemini": REPLY}
LOGGED = Form(
    Table("logged", *_LOGGED, Leaf("message", "text", TEXT), known=["messageId", "type"]),
    None,
    "prompt",
)
_VERSION_KEYS = ["timestamp", "content", "displayContent", "thoughts", "tokens", "model", "toolCalls", "sessionId"]
VERSION = Form(
    Table("version", Leaf("id", "message_uuid", TEXT), Leaf("type", "type", TEXT), known=_VERSION_KEYS),
    None,
    "progress",
)
"""What a message said before it was written anew."""
_STATE_KEYS = ["sessionId", "projectHash", "startTime", "directories", "kind", "memoryScratchpad", MESSAGES]
SET_TABLE = Table("set", Time("lastUpdated", "timestamp"), Leaf("summary", "text", TEXT), known=_STATE_KEYS)
SET = Form(Table("patch", Nest(PATCH, SET_TABLE)), None, "state")
SUMMARY = SET._replace(kind="summary")
HEADER = Form(
    Table("header", Time("lastUpdated", "timestamp"), Leaf("summary", "text", TEXT), known=_STATE_KEYS), None, "state"
)
REWOUND = Form(Table("rewind", Leaf(REWIND, "message_uuid", TEXT)), None, "state")
SAVED = Form(Table("saved", known=["history", "authType"]), None, "state")
OTHER = Form(Table("other"), None, "unknown")

_SPEAKERS = {"user": USER, "gemini": GEMINI, "info": NOTICE, "warning": NOTICE, "error": NOTICE}


def message_form(record: Mapping[str, JSON]) -> Form:
    """The form of a message."""
    speaker = record.get("type")
    return _SPEAKERS.get(speaker, STRANGE) if type(speaker) is str else STRANGE


def entry_form(entry: Mapping[str, JSON]) -> Form:
    """The form of an entry of the log of prompts; the client writes prompts alone."""
    speaker = entry.get("type")
    return _ENTRIES.get(speaker, REMARK) if type(speaker) is str else REMARK


def is_header(record: Mapping[str, JSON]) -> bool:
    """True for the record that says whose session this is; foreign writers leave out the project's hash."""
    return type(record.get("sessionId")) is str and (type(record.get("projectHash")) is str or "startTime" in record)


def state_form(record: Mapping[str, JSON]) -> Form:
    """The form of a record that is no message, tested in the client's own order."""
    if type(record.get(REWIND)) is str:
        return REWOUND
    patch = record.get(PATCH)
    if type(patch) is dict:
        return SUMMARY if type(patch.get("summary")) is str else SET
    if is_header(record):
        return HEADER
    return OTHER


_BY_NAME = {form.table.name: form for form in (VERSION, SET, HEADER, REWOUND, SAVED, OTHER, LOGGED)}
_SPOKEN_BY_NAME = {form.table.name: form for form in (USER, GEMINI, NOTICE, *TURN.values(), PROMPT, REPLY, REMARK)}
_USUAL = {"user": USER, "assistant": GEMINI, "system": NOTICE}
_USUAL_KINDS = {"progress": VERSION, "summary": SET, "prompt": LOGGED}


def chosen(is_message: bool, value: Mapping[str, JSON], agent: str) -> Form:
    """The form a message or record was made with: the usual one unless it is noted."""
    own = (value.get("extensions") or {}).get(agent) or {}
    name = str(own.get("form", ""))
    if is_message:
        return _SPOKEN_BY_NAME.get(name) or _USUAL[value["role"]]
    return _BY_NAME.get(name) or _USUAL_KINDS.get(value["kind"]) or SET


def form_name(form: Form, is_message: bool) -> str | None:
    """What must be noted so that `chosen` finds the form again."""
    usual = _USUAL[form.role] if is_message and form.role else _USUAL_KINDS.get(form.kind, SET)
    return form.table.name if usual.table is not form.table else None
