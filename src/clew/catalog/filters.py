"""The one place where `Filters` become SQL: a condition on rows of sessions, for the catalog and for every warehouse.

`--file` and `--text` look into stored text, which SQL cannot read: the caller finds the sessions with that text first
and passes their keys.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from clew.agents.file_evidence import is_windows
from clew.agents.tools import FILE_CHANGE_TOOLS
from clew.analysis.session import project_of
from clew.catalog.ids import session_key
from clew.errors import UsageError
from clew.filters import Filters
from clew.io.paths import encode_claude, path_to_text
from clew.model.time import to_microseconds
from clew.render.text_safety import unmasked_parts

if TYPE_CHECKING:
    from clew.annotations import AnnotationIndex

Value = str | int
Mask = Callable[[str], str]


class Condition(NamedTuple):
    """A condition of a WHERE clause, and the values of its `?` parameters."""

    text: str
    values: tuple[Value, ...] = ()


def in_list(column: str, values: Collection[Value]) -> Condition:
    """The column is one of the values; without a value no row passes."""
    if not values:
        return Condition("1 = 0")
    return Condition(f"{column} IN ({', '.join('?' * len(values))})", tuple(values))


def all_of(conditions: Iterable[Condition]) -> Condition:
    """Every condition holds; without one, every row passes."""
    found = list(conditions)
    text = " AND ".join(f"({condition.text})" for condition in found) or "1 = 1"
    return Condition(text, tuple(value for condition in found for value in condition.values))


def any_of(*conditions: Condition) -> Condition:
    """At least one of the conditions holds."""
    text = " OR ".join(condition.text for condition in conditions)
    return Condition(f"({text})", tuple(value for condition in conditions for value in condition.values))


def _at_or_below(column: str, folder: str) -> Condition:
    """The path in a column is a folder, or below it."""
    values: tuple[str, ...] = ()
    if is_windows(folder):
        column, values, folder = f"lower(replace({column}, ?, ?))", ("\\", "/"), folder.lower().replace("\\", "/")
    below = folder.rstrip("/") + "/"
    text = f"{column} = ? OR substr({column}, 1, {len(below)}) = ?"
    return Condition(text, (*values, folder, *values, below))


class Dialect(Protocol):
    """How the rows of one engine answer each filter. Text is compared without regard to case."""

    def contains(self, column: str, text: str) -> Condition:
        """The column contains the text."""

    def project(self, text: str) -> Condition:
        """The path of the session's folder contains the text, as it is or as Claude Code names its folders."""

    def folder(self, path: str) -> Condition:
        """The session's folder is this one or below it; case counts, except in a path of Windows."""

    def branch(self, text: str) -> Condition:
        """The name of the git branch contains the text."""

    def model(self, text: str) -> Condition:
        """A model of the session has a name that contains the text."""

    def tool(self, text: str) -> Condition:
        """A tool was called whose name contains the text."""

    def has(self, feature: str) -> Condition:
        """The session has an error, thinking, an edit, or starts a sub-agent."""

    def keys(self, found: Collection[Value]) -> Condition:
        """The session is one of those found by their text."""


def session_condition(
    filters: Filters,
    dialect: Dialect,
    *,
    with_file: Collection[Value] | None = None,
    with_text: Collection[Value] | None = None,
) -> Condition:
    """The condition that a row of a session passes all filters.

    `with_file` and `with_text` are the keys of the sessions with the wanted file name and the wanted text.
    """
    if filters.commits is not None:
        raise UsageError("--commits cannot be combined with --engine")
    return all_of(_conditions(with_annotated_sessions(filters), dialect, with_file, with_text))


NO_SESSION = ""
"""The key of no session."""


def with_annotated_sessions(filters: Filters, load: Callable[[], AnnotationIndex] | None = None) -> Filters:
    """The filters with the keys of the sessions that have the wanted labels and star, in place of these.

    Annotations are in a file on this machine, so keys are what every engine can compare. `load` reads them.
    """
    if not filters.label and not filters.starred:
        return filters
    from clew.annotations import Annotations  # most commands need none

    found = (load or Annotations().index)().sessions(filters.label, starred=filters.starred)
    keys = {session_key(agent, session) for agent, session in found}
    if filters.sessions:
        keys &= set(filters.sessions)
    sessions = tuple(sorted(keys)) or (NO_SESSION,)
    return msgspec.structs.replace(filters.without("label", "starred"), sessions=sessions)


def _conditions(
    filters: Filters, dialect: Dialect, with_file: Collection[Value] | None, with_text: Collection[Value] | None
) -> Iterator[Condition]:
    if filters.agent:
        yield in_list("agent", filters.agent)
    if filters.project is not None:
        yield dialect.project(filters.project)
    if filters.folders:
        yield any_of(*map(dialect.folder, filters.folders))
    if filters.sessions:
        yield in_list("session_id", filters.sessions)
    if filters.branch is not None:
        yield dialect.branch(filters.branch)
    if filters.model is not None:
        yield dialect.model(filters.model)
    if filters.tool is not None:
        yield dialect.tool(filters.tool)
    if filters.since is not None:
        # 0: no time is known.
        yield Condition("ended_us > 0 AND ended_us >= ?", (to_microseconds(filters.since),))
    if filters.until is not None:
        yield Condition("started_us > 0 AND started_us <= ?", (to_microseconds(filters.until),))
    if filters.min_prompts is not None:
        yield Condition("turn_count >= ?", (filters.min_prompts,))
    for feature in filters.has:
        yield dialect.has(feature)
    for wanted, found in ((filters.file, with_file), (filters.text, with_text)):
        if wanted is not None:
            yield dialect.keys(found or ())


class CatalogRows:
    """The table `session` of the SQLite catalog; `prepare` must have been called for the connection."""

    def contains(self, column: str, text: str) -> Condition:
        return Condition(f"contains_text({column}, ?)", (text.casefold(),))

    def project(self, text: str) -> Condition:
        folder = "json_extract(header, '$.workspace')"
        names = ("project", folder, "json_extract(header, '$.workspace_encoded')")
        in_encoded_folder = Condition(f"encoded_folder_contains({folder}, ?)", (text.casefold(),))
        return any_of(*(self.contains(name, text) for name in names), in_encoded_folder)

    def folder(self, path: str) -> Condition:
        workspace = "json_extract(header, '$.workspace')"
        encoded = Condition("json_extract(header, '$.workspace_encoded') = ?", (encode_claude(path),))
        return any_of(_at_or_below(workspace, path_to_text(path)), all_of([self._is_no_path(workspace), encoded]))

    def _is_no_path(self, column: str) -> Condition:
        return Condition(f"instr(coalesce({column}, ''), '/') = 0 AND instr(coalesce({column}, ''), ?) = 0", ("\\",))

    def branch(self, text: str) -> Condition:
        return self.contains("git_branch", text)

    def model(self, text: str) -> Condition:
        return self._in_header("models", self.contains("value", text))

    def tool(self, text: str) -> Condition:
        return self._in_header("tools", self.contains("value", text))

    def _in_header(self, name: str, condition: Condition) -> Condition:
        """One of a list of names in the header passes."""
        names = f"SELECT 1 FROM json_each(header, '$.{name}') WHERE {condition.text}"
        return Condition(f"EXISTS ({names})", condition.values)

    def has(self, feature: str) -> Condition:
        if feature == "edit":
            return self._in_header("tools", in_list("lower(value)", sorted(FILE_CHANGE_TOOLS)))
        if feature == "subagent":
            parents = "SELECT parent_session_id FROM session WHERE parent_session_id <> ''"
            return Condition(f"json_extract(header, '$.starts_subagents') OR session_id IN ({parents})")
        return Condition({"error": "error_count > 0", "thinking": "json_extract(header, '$.has_thinking')"}[feature])

    def keys(self, found: Collection[Value]) -> Condition:
        # One parameter, however many sessions there are: SQLite limits the number of parameters.
        return Condition("id IN (SELECT value FROM json_each(?))", (f"[{','.join(map(str, found))}]",))


def prepare(db: sqlite3.Connection, mask: Mask | None = None) -> None:
    """Teach a connection to compare text without regard to case, and the folder names of Claude Code.

    With a mask, only what the masked text shows is found: else a caller could guess a masked value piece by piece.
    """
    mask = lru_cache(maxsize=4096)(mask) if mask is not None else None

    def contains_text(text: str | None, wanted: str) -> bool:
        if not text or wanted not in text.casefold():
            return False
        return mask is None or any(wanted in part.casefold() for part in unmasked_parts(mask(text)))

    @lru_cache(maxsize=4096)  # Many sessions have the same folder.
    def encoded_folder_contains(path: str | None, wanted: str) -> bool:
        if not path or wanted not in encode_claude(path).casefold():
            return False
        return mask is None or any(wanted in encode_claude(part).casefold() for part in unmasked_parts(mask(path)))

    db.create_function("contains_text", 2, contains_text, deterministic=True)
    db.create_function("encoded_folder_contains", 2, encoded_folder_contains, deterministic=True)


@dataclass(frozen=True)
class WarehouseRows:
    """The tables `sessions_copies`, `messages_copies`, ... of DuckDB, PostgreSQL and Spark, with one batch per file.

    A file may repeat messages that count, and are visible, in another session. Its own session has them all the same,
    so copies are asked, and not the merged tables.
    """

    position: str = "strpos"
    """The function that finds a text in another: `instr` in Spark."""
    replace_all: str = "regexp_replace({}, '[^A-Za-z0-9]', '-', 'g')"
    """Replaces each character that Claude Code leaves out of the names of its folders."""
    keeps_old_batches: bool = True
    """True for a lake, whose tables of copies also hold batches that were replaced."""

    def contains(self, column: str, text: str) -> Condition:
        return Condition(f"{self.position}(lower({column}), ?) > 0", (text.lower(),))

    def project(self, text: str) -> Condition:
        encoded = self.replace_all.format("workspace")
        name = self.contains("project", text)
        in_path = any_of(name, self.contains("workspace", text), self.contains(encoded, text))
        return self._by_path_or_name(in_path, name)

    def folder(self, path: str) -> Condition:
        name = Condition("project = ?", (project_of(path) or "",))
        return self._by_path_or_name(_at_or_below("workspace", path), name)

    def _by_path_or_name(self, by_path: Condition, by_name: Condition) -> Condition:
        """A workspace that was masked is a tag, which says nothing; then the name of the project counts."""
        is_path = any_of(self.contains("workspace", "/"), self.contains("workspace", "\\"))
        is_masked = Condition(f"NOT {is_path.text}", is_path.values)
        return any_of(all_of([is_path, by_path]), all_of([is_masked, by_name]))

    def branch(self, text: str) -> Condition:
        return self.contains("git_branch", text)

    def model(self, text: str) -> Condition:
        return self._with("messages", self.contains("model", text))

    def tool(self, text: str) -> Condition:
        return self._with("tool_calls", self.contains("name", text))

    def has(self, feature: str) -> Condition:
        if feature == "error":
            return Condition("error_count > 0")
        if feature == "edit":
            return self._with("tool_calls", in_list("lower(name)", sorted(FILE_CHANGE_TOOLS)))
        if feature == "subagent":
            parents = f"SELECT parent_session_id FROM {self._current('sessions')} WHERE parent_session_id <> ''"
            return Condition(f"has_subagent_records = 1 OR session_id IN ({parents})")
        return self._with("blocks", Condition("type = 'thinking'"))

    def keys(self, found: Collection[Value]) -> Condition:
        return in_list("batch", found)

    def file(self, text: str) -> Condition:
        """A call named a file whose path contains the text. Tables of level `metrics` have no such text."""
        # Like all text, the names of files are found in visible copies alone.
        of_session = Condition("kind = 'file' AND batch IN (SELECT batch FROM sessions)")
        return self._with("blocks", all_of([of_session, self.contains("text", text)]))

    def any_copy(self, condition: Condition) -> Condition:
        """The column `session_id` names a session of which one copy passes a condition."""
        return Condition(
            f"session_id IN (SELECT session_id FROM {self._current('sessions')} WHERE {condition.text})",
            condition.values,
        )

    def _with(self, table: str, condition: Condition) -> Condition:
        return Condition(f"batch IN (SELECT batch FROM {table}_copies WHERE {condition.text})", condition.values)

    def _current(self, table: str) -> str:
        if not self.keeps_old_batches:
            return f"{table}_copies"
        return f"(SELECT * FROM {table}_copies WHERE batch IN (SELECT batch FROM current_batches)) c"


CATALOG = CatalogRows()
DUCKDB = WarehouseRows()
POSTGRESQL = WarehouseRows(keeps_old_batches=False)
SPARK = WarehouseRows(position="instr", replace_all="regexp_replace({}, '[^A-Za-z0-9]', '-')")

SourcesWithText = Callable[[str, frozenset[str] | None], Collection[int]]
"""The ids of the sources with a text that contains the first argument, of these kinds of text or of any."""


def no_text(_text: str, _kinds: frozenset[str] | None) -> Collection[int]:
    """No source: for callers whose filters never look into text."""
    return ()


def matching_sources(
    db: sqlite3.Connection, filters: Filters, sources_with_text: SourcesWithText, mask: Mask | None = None
) -> frozenset[int]:
    """The ids of the sources whose sessions pass all filters."""
    condition = catalog_condition(db, filters, sources_with_text, mask)
    return frozenset(row[0] for row in db.execute(f"SELECT id FROM session WHERE {condition.text}", condition.values))


def catalog_condition(
    db: sqlite3.Connection, filters: Filters, sources_with_text: SourcesWithText, mask: Mask | None = None
) -> Condition:
    """The condition that a row of the table `session` of an open catalog is of a session that passes all filters.

    Where several files hold copies of a session, it passes if one of them does. With a mask, filters compare only what
    masked names show.
    """
    if filters == Filters():
        return all_of([])
    if filters.commits is not None:
        from clew.catalog.commit_links import with_commit_sessions  # calls git, which few commands need

        filters = with_commit_sessions(db, filters)
    prepare(db, mask)
    with_file = sources_with_text(filters.file, frozenset({"file"})) if filters.file is not None else None
    with_text = sources_with_text(filters.text, None) if filters.text is not None else None
    condition = session_condition(filters, CATALOG, with_file=with_file, with_text=with_text)
    passing = f"SELECT session_id FROM session WHERE {condition.text}"
    return Condition(f"session_id IN ({passing})", condition.values)


class SessionSelector(Protocol):
    """Chooses sessions for statistics, by conditions on the portable tables."""

    def contains(self, column: str, text: str) -> Condition:
        """The column contains the text."""

    def sessions(self, filters: Filters) -> Condition:
        """The column `session_id` names a session that passes all filters."""


@dataclass(frozen=True)
class CatalogSessions:
    """Chooses sessions of the catalog."""

    db: sqlite3.Connection
    sources_with_text: SourcesWithText
    mask: Mask | None = None

    def contains(self, column: str, text: str) -> Condition:
        prepare(self.db, self.mask)
        return CATALOG.contains(column, text)

    def sessions(self, filters: Filters) -> Condition:
        return catalog_condition(self.db, filters, self.sources_with_text, self.mask)


@dataclass(frozen=True)
class WarehouseSessions:
    """Chooses sessions of a warehouse, whose tables may hold no text."""

    dialect: WarehouseRows

    def contains(self, column: str, text: str) -> Condition:
        return self.dialect.contains(column, text)

    def sessions(self, filters: Filters) -> Condition:
        if filters.text is not None:
            raise UsageError("--text cannot be combined with --engine")
        conditions = [session_condition(filters.without("file"), self.dialect)]
        if filters.file is not None:
            conditions.append(self.dialect.file(filters.file))
        return self.dialect.any_copy(all_of(conditions))
