"""The arguments of the tools: types that check them, and the JSON Schema that clients see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from clew.catalog.search import Mode
from clew.errors import UsageError
from clew.filters import FILTER_NAMES
from clew.render.detail import Detail

MAX_TEXT_CHARS = 2_000
MAX_ITEMS = 100
DEFAULT_ITEMS = 20
MAX_NUMBER = 10**9

DetailName = Literal["", Detail]
SortName = Literal["time", "cost", "tokens", "messages"]
GroupName = Literal[
    "day", "week", "month", "weekday", "hour", "agent", "model", "project", "branch", "session", "tool", "block"
]
PlaceName = Literal["prompts", "answers", "thinking", "tools", "titles", "files"]
HasName = Literal["error", "thinking", "subagent", "edit"]

Text = Annotated[str, Meta(max_length=MAX_TEXT_CHARS)]
Texts = Annotated[list[Text], Meta(max_length=20)]
Number = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
"""Messages and lines count from 1: a 0 was not given."""
Limit = Annotated[int, Meta(ge=1, le=MAX_ITEMS, description="How many results to return at most.")]
Cursor = Annotated[
    Text,
    Meta(
        description="The `next_cursor` of the previous answer, for its next part; repeat the other arguments unchanged."
    ),
]
Session = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_TEXT_CHARS,
        description="A session: `agent:id` or `agent:id#message` from another answer, the beginning of an id, "
        "@last for the newest session, or @2 for the one before it.",
    ),
]


class Arguments(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The arguments of a tool. An argument that is not given is an empty text, an empty list or 0."""


class Filtered(Arguments, kw_only=True):
    """Arguments of a tool that takes the filters of `clew list` and other commands."""

    agent: Annotated[Texts, Meta(description="Only sessions of these agents, such as claude-code, codex, gemini.")] = []
    project: Annotated[
        Text, Meta(description="Only projects whose path contains this text; an absolute path: that folder and below.")
    ] = ""
    here: Annotated[bool, Meta(description="Only sessions of the folder that this server was started in.")] = False
    branch: Annotated[Text, Meta(description="Only git branches whose name contains this text.")] = ""
    model: Annotated[Text, Meta(description="Only models whose name contains this text.")] = ""
    since: Annotated[
        Text,
        Meta(description="Only activity since this time: today, monday, last week, 3d, 6mo, october, 2026-11-03."),
    ] = ""
    until: Annotated[Text, Meta(description="Only activity before this time.")] = ""
    tool: Annotated[Text, Meta(description="Only sessions that called a tool whose name contains this text.")] = ""
    file: Annotated[Text, Meta(description="Only sessions that used a file whose path contains this text.")] = ""
    has: Annotated[list[HasName], Meta(description="Only sessions with all of these.")] = []
    text: Annotated[Text, Meta(description="Only sessions that contain all these words.")] = ""
    label: Annotated[Texts, Meta(description="Only sessions with all of these labels of the user.")] = []
    starred: Annotated[bool, Meta(description="Only sessions that the user starred.")] = False
    min_prompts: Annotated[Number, Meta(description="Only sessions with at least so many prompts.")] = 0
    commits: Annotated[
        Text,
        Meta(
            description="Only sessions that made commits of this git range, such as main..HEAD, in the server's folder."
        ),
    ] = ""

    def filters(self) -> dict[str, Any]:
        """The filters by name, as `Filters.of` takes them."""
        return {name: getattr(self, name) for name in FILTER_NAMES}


class SearchArguments(Filtered, kw_only=True):
    """Arguments of `search`."""

    query: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MAX_TEXT_CHARS,
            description='Words that must all occur; "quoted words" side by side, pre* for a beginning, OR, -word.',
        ),
    ]
    mode: Annotated[Mode, Meta(description="words, any part of a text, or a regular expression (RE2).")] = "words"
    places: Annotated[list[PlaceName], Meta(description="Only in these kinds of text.")] = []
    newest: Annotated[bool, Meta(description="Newest first, instead of best match first.")] = False
    limit: Limit = DEFAULT_ITEMS
    cursor: Cursor = ""


class ListArguments(Filtered, kw_only=True):
    """Arguments of `list_sessions`."""

    sort: Annotated[SortName, Meta(description="Sort by this, the newest or largest first.")] = "time"
    reverse: Annotated[bool, Meta(description="Oldest or smallest first.")] = False
    subagents: Annotated[bool, Meta(description="List the sessions of sub-agents too.")] = False
    limit: Limit = DEFAULT_ITEMS
    cursor: Cursor = ""


class ShowArguments(Arguments, kw_only=True):
    """Arguments of `show`."""

    session: Session
    first: Annotated[Number, Meta(description="The first message to show.")] = 0
    last: Annotated[Number, Meta(description="The last message to show.")] = 0
    detail: Annotated[
        DetailName,
        Meta(
            description="prompts, conversation (with answers; the default), actions (with tool calls), full (with "
            "thinking and tool output; the default for one message)."
        ),
    ] = ""
    cursor: Cursor = ""


class FilesArguments(Arguments, kw_only=True):
    """Arguments of `files`."""

    session: Session
    path: Annotated[Text, Meta(description="Only files whose path contains this text.")] = ""
    changes: Annotated[bool, Meta(description="Only created, changed and deleted files.")] = False
    limit: Limit = MAX_ITEMS
    cursor: Cursor = ""


class FileAtArguments(Arguments, kw_only=True):
    """Arguments of `file_at`."""

    session: Session
    path: Annotated[
        str, Meta(min_length=1, max_length=MAX_TEXT_CHARS, description="The path of the file, or the end of it.")
    ]
    message: Annotated[Number, Meta(description="The message, unless `session` names it, as in agent:id#12.")] = 0
    unproved: Annotated[bool, Meta(description="Return content even if the records do not prove it.")] = False
    cursor: Cursor = ""


class BlameArguments(Arguments, kw_only=True):
    """Arguments of `blame`."""

    path: Annotated[
        str, Meta(min_length=1, max_length=MAX_TEXT_CHARS, description="A file on this machine, as it is now.")
    ]
    first: Annotated[Number, Meta(description="The first line of the file to return.")] = 0
    last: Annotated[Number, Meta(description="The last line of the file to return.")] = 0
    containing: Annotated[
        Text, Meta(description="Only lines that contain this text, such as `def parse`, and that a session wrote.")
    ] = ""
    recorded_path: Annotated[Text, Meta(description="The path in the records, if the file was moved since.")] = ""
    all_sessions: Annotated[
        bool, Meta(description="Read every session that names a file of this name; this may take long.")
    ] = False
    limit: Limit = MAX_ITEMS
    cursor: Cursor = ""


class TodosArguments(Arguments, kw_only=True):
    """Arguments of `todos`."""

    session: Session
    limit: Limit = DEFAULT_ITEMS
    cursor: Cursor = ""


class StatsArguments(Filtered, kw_only=True):
    """Arguments of `stats`."""

    by: Annotated[GroupName, Meta(description="Return a row for each day, model, project and so on.")] = "day"
    session: Annotated[Text, Meta(description="Count only this session, as `agent:id`.")] = ""
    limit: Limit = DEFAULT_ITEMS
    cursor: Cursor = ""


class ResumeArguments(Arguments, kw_only=True):
    """Arguments of `resume_command`."""

    session: Session
    to: Annotated[Text, Meta(description="Continue in this agent, such as codex; default: the session's own.")] = ""


A = TypeVar("A", bound=Arguments)


def parse_arguments(given: Mapping[str, Any], kind: type[A]) -> A:
    """Check and convert the arguments of a call. Raises UsageError that says which one is wrong."""
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise UsageError(str(error)) from None


def input_schema(kind: type[Arguments]) -> dict[str, Any]:
    """The JSON Schema of the arguments, in one object without `$ref`."""
    (_,), components = msgspec.json.schema_components([kind])
    schema: dict[str, Any] = components[kind.__name__]
    schema.pop("title", None)
    schema.pop("description", None)
    return schema
