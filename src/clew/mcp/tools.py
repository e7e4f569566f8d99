"""The tools: each answers from the catalog or from one session, masked, in a bounded piece of JSON with citations.

Nothing here knows the protocol; `server.py` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from clew.agents import registry
from clew.agents.file_evidence import FileContent
from clew.blame import blame_file, line_row, line_text
from clew.catalog.access import OpenCatalog
from clew.catalog.filters import SourcesWithText, catalog_condition
from clew.catalog.ids import session_key
from clew.catalog.queries import list_rows
from clew.catalog.search import Request, Searcher
from clew.catalog.stats import BLOCK, catalog_stats, with_names
from clew.catalog.sync_level import SyncLevel
from clew.continuation import Continuation
from clew.errors import Busy, LimitExceeded, UnknownReference, UsageError
from clew.file_history.blame import Line, Origin
from clew.file_history.history import FileHistory
from clew.file_history.rows import answer_row, content_row, describe_certainty, evidence_of, evidence_row
from clew.filters import Filters
from clew.host import Host
from clew.library import Library
from clew.mcp.answers import (
    Position,
    TextPage,
    decode_cursor,
    encode_cursor,
    page_of_rows,
    page_of_texts,
    visible_texts,
)
from clew.mcp.arguments import (
    Arguments,
    BlameArguments,
    FileAtArguments,
    FilesArguments,
    Filtered,
    ListArguments,
    ResumeArguments,
    SearchArguments,
    ShowArguments,
    StatsArguments,
    TodosArguments,
    parse_arguments,
)
from clew.mcp.freshness import Freshness
from clew.mcp.masking import Masking, OpenSession
from clew.model.json import JSON
from clew.references import message_of
from clew.render.detail import Detail
from clew.render.markdown import section_markdown
from clew.render.outline import by_section, session_title
from clew.render.parts import Call, Part
from clew.render.tables import counted
from clew.todo_history import todo_history

MAX_BLAMED_BYTES = 4 << 20
MAX_BYTES_READ_FOR_BLAME = 16 << 20
"""The size of all sessions that are read for a file; those that changed it are read even if they are larger."""
MARKS = "«", "»"
LARGEST_SESSIONS = 5
"""How many sessions are cited for a total."""
_SESSION_COLUMNS = (
    "title project git_branch models started_at ended_at messages tool_calls has_errors is_agent_session "
    "total_tokens cost cost_is_at_least"
).split()

Answer = dict[str, JSON]


class Tool(NamedTuple):
    """A tool as clients see it."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]


TOOLS = (
    Tool(
        "search",
        "Search the history of all coding agents",
        "Search prompts, answers, thinking, tool calls, tool output, titles and file names of past sessions of every "
        "coding agent on this machine. Each hit has a `ref` (agent:session#message) to cite, and to pass to `show`.",
        SearchArguments,
    ),
    Tool(
        "list_sessions",
        "List sessions",
        "List past sessions, newest first, with title, project, branch, models, tokens and cost.",
        ListArguments,
    ),
    Tool(
        "show",
        "Read a session",
        "Read the messages of a session as Markdown: all, a range, or the one that the reference names.",
        ShowArguments,
    ),
    Tool(
        "files",
        "Files of a session",
        "List which message of a session read, created, changed or deleted which file, and how certain its content is.",
        FilesArguments,
    ),
    Tool(
        "file_at",
        "A file at a message",
        "Return a file as it was at a message of a session, as far as the records prove it.",
        FileAtArguments,
    ),
    Tool(
        "blame",
        "Who wrote these lines",
        "For the lines of a file: which session and message wrote them, after which prompt. Use `show` with the `ref` "
        "for the reasons. Lines without `ref` are not proved by any session.",
        BlameArguments,
    ),
    Tool(
        "todos",
        "Task list of a session",
        "Return the task list of a session and how each message changed it, or as it was at one message.",
        TodosArguments,
    ),
    Tool(
        "stats",
        "Usage and cost",
        "Count tokens, cost, sessions, turns, tool calls and changed lines by day, model, project, session and so on.",
        StatsArguments,
    ),
    Tool(
        "resume_command",
        "Command that resumes a session",
        "Return the shell commands that continue a session in its agent or in another one. Nothing is run.",
        ResumeArguments,
    ),
)


class Tools:
    """Answers calls of tools over one library."""

    def __init__(
        self,
        library: Library,
        masking: Masking,
        freshness: Freshness,
        *,
        target_host: Host | None = None,
        source_options: Sequence[str] = (),
    ) -> None:
        """`target_host` is the home that `resume_command` converts for; `source_options` precede its `clew convert`."""
        self._library, self._masking, self._freshness = library, masking, freshness
        self._target_host, self._source_options = target_host, list(source_options)
        self._notes: list[str] = []

    def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Answer a call; raises ClewError or OSError."""
        tool = next((one for one in TOOLS if one.name == name), None)
        if tool is None:
            raise UsageError(f"unknown tool {name!r}; there are {', '.join(one.name for one in TOOLS)}")
        asked = parse_arguments(arguments, tool.arguments)
        self._notes = self._freshness.notes()
        answer: Answer = getattr(self, f"_{name}")(asked)
        if self._notes:
            answer["notes"] = self._masking.value(list(dict.fromkeys(self._notes)))
        shown: Answer = visible_texts(answer)
        return shown

    def close(self) -> None:
        """End a running sync."""
        self._freshness.stop()

    def masked(self, text: str) -> str:
        """A text about a call, such as an error, masked."""
        return self._masking.text(text)

    def note(self, text: str) -> None:
        """Add a warning to the answer that is being made."""
        self._notes.append(text)

    def _filters(self, asked: Filtered) -> Filters:
        return Filters.of(now=self._library.now(), **asked.filters())

    def _open(self, reference: str) -> tuple[OpenSession, int | None]:
        """The session that a reference names, and the message in it. Titles and paths are no references here."""
        session = self._library.get(reference, missing=True, ids_only=True)
        return self._masking.open(session), message_of(reference)

    def _search(self, asked: SearchArguments) -> Answer:
        filters = self._filters(asked)
        start = decode_cursor(asked, asked.cursor).item
        request = Request(
            query=asked.query,
            mode=asked.mode,
            places=tuple(asked.places),
            newest=asked.newest,
            limit=asked.limit,
            offset=start,
            filters=filters if filters != Filters() else None,
        )
        with self._library.catalog(SyncLevel.TEXT) as catalog:
            with closing(self._searcher(catalog)) as searcher:
                found = searcher.search(request)
            if asked.mode == "words" and (unindexed := catalog.unindexed_text().blocks):
                self.note(f"{unindexed} texts are not indexed yet and were not searched")
        rows = [
            {
                "ref": self._masking.text(hit.reference),
                "kind": hit.kind,
                "time": hit.timestamp,
                "title": hit.title,
                "project": hit.project,
                "text": hit.snippet.marked(*MARKS),
            }
            for hit in found.hits
        ]
        page = page_of_rows(rows, 0, asked.limit)
        end = start + len(page.rows)
        rest = Position(end) if end < found.total and page.rows else None
        total = {"total": found.total} if found.is_total_known else {}
        return {**total, **_results(asked, page.rows, rest)}

    def _searcher(self, catalog: OpenCatalog) -> Searcher:
        return Searcher(catalog.folder, self._masking.text, finds_masked_text=not self._masking.is_on)

    def _sources_with_text(self, catalog: OpenCatalog) -> SourcesWithText:
        """The function that finds text for filters; it opens the text index when it is called."""

        def find(text: str, kinds: frozenset[str] | None) -> set[int]:
            with closing(self._searcher(catalog)) as searcher:
                return searcher.sources_with_text(text, kinds)

        return find

    def _list_sessions(self, asked: ListArguments) -> Answer:
        filters = self._filters(asked)
        start = decode_cursor(asked, asked.cursor).item
        rows = self._rows(
            filters,
            limit=start + asked.limit + 1,
            sort=asked.sort,
            reverse=asked.reverse,
            subagents=asked.subagents,
        )
        shown = [self._session_row(row) for row in rows[start : start + asked.limit]]
        page = page_of_rows(shown, 0, asked.limit)
        end = start + len(page.rows)
        return _results(asked, page.rows, Position(end) if end < len(rows) else None)

    def _rows(
        self, filters: Filters, *, limit: int, sort: str = "time", reverse: bool = False, subagents: bool = False
    ) -> list[dict[str, JSON]]:
        with self._library.catalog(filters=filters) as catalog:
            mask = self._masking.text if self._masking.is_on else None
            condition = catalog_condition(catalog.db, filters, self._sources_with_text(catalog), mask)
            return list_rows(catalog.db, condition, subagents=subagents, limit=limit, sort=sort, reverse=reverse)

    def _session_row(self, row: dict[str, JSON]) -> dict[str, JSON]:
        masked = self._masking.value(row)
        return {"ref": f"{masked['agent']}:{masked['id']}", **{name: masked[name] for name in _SESSION_COLUMNS}}

    def newest_sessions(self, start: int, count: int) -> tuple[list[dict[str, JSON]], bool]:
        """Rows of the newest sessions for resources, and whether there are more; none while there is no catalog.

        Clients ask for them when they start, and some give up a server that is slow or has none.
        """
        try:
            self._freshness.notes(waits=False)
        except Busy:
            return [], False
        rows = self._rows(Filters(), limit=start + count + 1)
        shown: list[dict[str, JSON]] = visible_texts([self._session_row(row) for row in rows[start : start + count]])
        return shown, len(rows) > start + count

    def _show(self, asked: ShowArguments) -> Answer:
        session, message = self._open(asked.session)
        first, last = asked.first, asked.last
        if message is not None:
            self._require_message(session, message)
        if message is not None and not first and not last:
            first = last = message
        _refuse_empty_range("message", first, last)
        detail: Detail = asked.detail or ("full" if first and first == last else "conversation")
        start = decode_cursor(asked, asked.cursor)
        page = page_of_texts(_sections(session, max(first, start.item, 1), last, detail), start)
        rows = [{"ref": f"{session.reference}#{number}", "text": text} for number, text in page.texts]
        if not rows and not asked.cursor:
            if first:
                self._require_message(session, first)
            self.note("there is no text at this level of detail")
        project = session.header.get("workspace")
        about = {"session": session.reference, "title": self._listed_title(session), "project": project}
        return {**about, "detail": detail, **_results(asked, rows, page.rest)}

    def _listed_title(self, session: OpenSession) -> str:
        """The title that `list_sessions` has, which may be the user's own; masked."""
        key = session_key(session.plain.agent.id, session.plain.id)
        rows = self._rows(Filters(sessions=(key,)), limit=1, subagents=True)
        header = {**session.header, "title": session.value(rows[0]["title"])} if rows else session.header
        return session_title(header)

    def _require_message(self, session: OpenSession, message: int) -> None:
        if not 0 < message <= session.plain.facts.messages:
            raise UnknownReference(f"session {session.reference} has no message {message}")

    def _files(self, asked: FilesArguments) -> Answer:
        session, message = self._open(asked.session)
        history = FileHistory(session.plain.agent, session.plain.source)
        hidden = ("snapshot", "read") if asked.changes else ("snapshot",)
        rows = [
            evidence_row(evidence, history)
            for evidence in evidence_of(history, message)
            if evidence.action not in hidden
        ]
        if self._masking.is_on:
            rows = [_without_hashes(row) for row in rows]
        # The masked path is compared: else a masked name could be guessed character by character.
        masked = [row for row in session.value(rows) if asked.path.casefold() in row["path"].casefold()]
        shown = [{"ref": f"{session.reference}#{row.pop('message')}", **_without_nulls(row)} for row in masked]
        page = page_of_rows(shown, decode_cursor(asked, asked.cursor).item, asked.limit)
        for text in session.value(history.cut_off()):
            self.note(text)
        return {"total": len(masked), **_results(asked, page.rows, page.rest)}

    def _file_at(self, asked: FileAtArguments) -> Answer:
        session, named = self._open(asked.session)
        message = asked.message or named
        if message is None:
            raise UsageError("name a message: agent:id#12, or `message`")
        history = FileHistory(session.plain.agent, session.plain.source)
        # The masked names are compared: else a guess of a masked name could be confirmed.
        answer = history.at(message, history.resolve_path(asked.path, shown_as=session.value))
        is_wanted = answer.certainty in ("exact", "text") or (asked.unproved and answer.certainty == "unproved")
        (state,) = history.contents([answer]) if is_wanted else [None]
        row = {**answer_row(answer), "known": describe_certainty(answer)}
        if self._masking.is_on:
            row = _without_hashes(row)
        seen = row.pop("message")
        page = TextPage([], None)
        if isinstance(state, FileContent):
            content = content_row(state._replace(body=session.file(state.body, answer.path)))
            if "content" in content:
                page = page_of_texts([(0, content["content"])], decode_cursor(asked, asked.cursor))
            else:
                self.note("the file is not text; its content is left out")
        shown = _without_nulls(session.value(row))
        reference = f"{session.reference}#{seen if seen is not None else message}"
        texts = {"content": page.texts[0][1]} if page.texts else {}
        return {"ref": reference, **shown, **texts, **_next_cursor(asked, page.rest)}

    def _blame(self, asked: BlameArguments) -> Answer:
        _refuse_empty_range("line", asked.first, asked.last)
        try:
            path = Path(asked.path).expanduser()
        except RuntimeError as error:  # no such user
            raise UsageError(f"{asked.path}: {error}") from None
        if path.is_file() and path.stat().st_size > MAX_BLAMED_BYTES:
            raise LimitExceeded(f"{path} has more than {MAX_BLAMED_BYTES >> 20} MB")
        start = decode_cursor(asked, asked.cursor).item
        blamed = blame_file(
            self._library,
            path,
            asked.recorded_path or None,
            self.note,
            all_sessions=asked.all_sessions,
            max_bytes=MAX_BYTES_READ_FOR_BLAME,
        )
        if blamed.may_miss_origins:
            unread = counted(blamed.unread_sessions, "session")
            self.note(f"not read: {unread} that may mean another file of this name; `all_sessions` reads them")
        elif not blamed.sessions:
            self.note("no session names this file; `recorded_path` is its path in the records, if it was moved")
        redactor = self._masking.redactor(blamed.sessions_of(blamed.lines))
        texts = [line_text(line) for line in blamed.lines]
        if redactor is not None:
            texts = redactor.mask_lines(texts, str(path))
        first, last = asked.first or 1, asked.last or len(texts)
        lines = list(zip(blamed.lines, texts, strict=True))[first - 1 : last]
        if asked.containing:
            # Only what is shown is compared: else the rest of a file could be guessed character by character.
            lines = [(line, text) for line, text in lines if line.origin is not None and asked.containing in text]
        rows = [_block_row(block) for block in _blocks(lines)]
        shown = rows if redactor is None else redactor.learn_and_mask(rows)
        page = page_of_rows(map(_with_references, shown), start, asked.limit)
        return {"lines": len(blamed.lines), **_results(asked, page.rows, page.rest)}

    def _todos(self, asked: TodosArguments) -> Answer:
        session, message = self._open(asked.session)
        history = todo_history(session.shown, message)
        rows = [history.row_at(message)] if message is not None else history.rows()
        shown = [{"ref": f"{session.reference}#{row.pop('index')}", **_without_nulls(row)} for row in rows]
        page = page_of_rows(shown, decode_cursor(asked, asked.cursor).item, asked.limit)
        if not history.states:
            self.note("there was no task list")
        return {"session": session.reference, **_results(asked, page.rows, page.rest)}

    def _stats(self, asked: StatsArguments) -> Answer:
        filters = self._filters(asked)
        if asked.session:
            session = self._library.get(asked.session, missing=True, ids_only=True)
            filters = msgspec.structs.replace(filters, sessions=(session_key(session.agent.id, session.id),))
        start = decode_cursor(asked, asked.cursor).item
        with self._library.catalog(SyncLevel.MESSAGES, filters) as catalog:
            mask = self._masking.text if self._masking.is_on else None
            stats = catalog_stats(catalog.db, filters, self._sources_with_text(catalog), mask)
            rows = (
                stats.blocks(int(self._library.now().timestamp() * 1_000_000))
                if asked.by == BLOCK
                else stats.rows(asked.by)
            )
            found = with_names({"totals": stats.totals(), "by_model": {}, "rows": rows}, self._masking.names)
        rows = found["rows"] if asked.by not in ("day", "week", "month") else found["rows"][::-1]
        page = page_of_rows(map(_without_nulls, rows), start, asked.limit)
        largest = self._rows(filters, limit=LARGEST_SESSIONS, sort="cost", subagents=True)
        return {
            "totals": _without_nulls(found["totals"]),
            "largest_sessions": [self._session_row(row)["ref"] for row in largest],
            **_results(asked, page.rows, page.rest),
        }

    def _resume_command(self, asked: ResumeArguments) -> Answer:
        session, _ = self._open(asked.session)
        agent = registry.get(registry.match(asked.to) if asked.to else session.plain.agent.id)
        host = self._target_host or Host.local()
        continuation = Continuation(session.plain, agent, host, self._library.subagents(session.plain))
        conversion: list[str] | None = None
        losses: list[JSON] = []
        if continuation.conversion is not None and continuation.converted is not None:
            if not continuation.converted.resume:
                raise UsageError("the id of this session is not safe on a command line; `clew convert` gives a new one")
            losses = msgspec.to_builtins(continuation.converted.losses)
            if not continuation.was_converted:
                continuation.conversion.rehearse(host.home)
                reference = f"{session.plain.agent.id}:{session.plain.id}"
                conversion = continuation.convert_command(reference, self._source_options)
        mask: Callable[[str], str] = lambda text: str(session.value(text))  # noqa: E731
        commands = continuation.shell_lines(mask, conversion)
        self.note("the commands were not run")
        return {
            "ref": session.reference,
            "agent": agent.id,
            "commands": commands,
            "losses": session.value(losses),
        }


def _results(asked: Arguments, rows: list[Any], rest: Position | None) -> Answer:
    return {"results": rows, **_next_cursor(asked, rest)}


def _next_cursor(asked: Arguments, rest: Position | None) -> Answer:
    return {} if rest is None else {"next_cursor": encode_cursor(asked, rest)}


def _without_nulls(row: dict[str, JSON]) -> dict[str, JSON]:
    """A row without the keys whose value is not known."""
    return {name: value for name, value in row.items() if value is not None}


def _without_hashes(row: dict[str, JSON]) -> dict[str, JSON]:
    """A row about a file without hashes: with a hash, guesses of what is masked in the file could be tested."""
    kept = {name: value for name, value in row.items() if name != "sha256"}
    return {name: _without_hashes(value) if isinstance(value, dict) else value for name, value in kept.items()}


def _refuse_empty_range(unit: str, first: int, last: int) -> None:
    if last and first > last:
        raise UsageError(f"the first {unit} {first} is after the last one {last}")


def _sections(session: OpenSession, first: int, last: int, detail: Detail) -> Iterator[tuple[int, str]]:
    """The messages or replies from `first` on, as Markdown, with the number of their first message. 0: to the end."""
    messages = (unit.value for unit in session.shown.units() if unit.is_message and unit.value["index"] >= first)
    for section in by_section(session.header, messages, detail=detail):
        number = getattr(section[0], "index", first)
        if last and number > last:
            return
        yield number, section_markdown(section, _anchors(section))


def _anchors(section: Iterable[Part]) -> Iterator[int]:
    """The messages that Markdown would set anchors for; answers have `ref` instead."""
    for part in section:
        if type(part) is Call and part.result is not None:
            yield part.result.index
        index = getattr(part, "index", None)
        if index is not None:
            yield index


class _Block(NamedTuple):
    """Adjacent lines of one origin."""

    origin: Origin | None
    lines: list[Line]
    texts: list[str]


def _blocks(lines: Iterable[tuple[Line, str]]) -> list[_Block]:
    blocks: list[_Block] = []
    for line, text in lines:
        last = blocks[-1] if blocks else None
        if last is None or last.origin != line.origin or last.lines[-1].number + 1 != line.number:
            last = _Block(line.origin, [], [])
            blocks.append(last)
        last.lines.append(line)
        last.texts.append(text)
    return blocks


def _block_row(block: _Block) -> dict[str, JSON]:
    """A block as JSON. Lines that no session wrote are left out: a file may hold what no session has seen."""
    row = line_row(block.lines[0])
    row |= {"line": None, "first": block.lines[0].number, "last": block.lines[-1].number}
    row["text"] = "\n".join(block.texts) if block.origin is not None else None
    return row


def _with_references(row: dict[str, JSON]) -> dict[str, JSON]:
    """A row with references in the place of session, agent and message."""
    lines = {"first": row["first"], "last": row["last"]}
    if row["session"] is None:
        return {"ref": None, **lines}
    session = f"{row['agent']}:{row['session']}"
    prompt = row["prompt"] and {"ref": f"{session}#{row['prompt']['message']}", "text": row["prompt"]["text"]}
    kept = {name: row[name] for name in ("time", "certainty", "how", "text")}
    return _without_nulls({"ref": f"{session}#{row['message']}", **lines, "prompt": prompt, **kept})
