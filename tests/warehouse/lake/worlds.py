"""Lakes to write, to look into, and to break."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from clew.catalog.statements import Statement
from clew.warehouse.build import SCHEMAS
from clew.warehouse.columns import TABLES
from clew.warehouse.lake import store as stores
from clew.warehouse.lake import write as writing
from clew.warehouse.lake.engine import DuckEngine
from clew.warehouse.lake.store import FolderStore, Store
from clew.warehouse.lake.write import WriteReport
from clew.warehouse.merge_sql import PUBLIC
from tests import children
from tests.catalog.worlds import claude_lines, claude_path, spelled
from tests.warehouse.machines import Machine

NAMES = [f"{letter * 8}-7777-4777-8777-777777777777" for letter in "abcd"]
Rows = dict[str, list[tuple[Any, ...]]]


def write(machine: Machine, store: Store, level: str = "raw") -> WriteReport:
    """Bring a lake up to date with a machine."""
    return writing.write(store, machine.sources(), machine.publisher(level), workers=1)


def rows(store: Store, tables: Iterable[str] = PUBLIC) -> Rows:
    """All that an engine over a lake shows, but for the names of batches."""
    engine = DuckEngine(store)
    queries = {name: f"SELECT {'* EXCLUDE (batch)' if name == 'sessions' else '*'} FROM {name}" for name in tables}
    try:
        return {name: sorted(engine.ask(Statement(query)), key=repr) for name, query in queries.items()}
    finally:
        engine.close()


def copies(store: Store) -> int:
    """How many rows of messages the objects hold, whether they count or not."""
    engine = DuckEngine(store)
    try:
        ((count,),) = engine.ask(Statement("SELECT COUNT(*) AS n FROM messages_copies"))
        return int(count)
    finally:
        engine.close()


def say(machine: Machine, name: str, count: int, day: int = 1, seed: int = 0, month: int = 10) -> Path:
    """A session with so many records, all of this day of 2026."""
    path = claude_path(machine.home, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = spelled(claude_lines(name, 0, count, seed)).replace(b"2026-10-01T", f"2026-{month:02}-{day:02}T".encode())
    path.write_bytes(text)
    return path


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def age(folder: Path, seconds: float = 100_000) -> None:
    """Let all objects of a lake be older than they are."""
    then = time.time() - seconds
    for path in folder.rglob("*.parquet"):
        os.utime(path, (then, then))


def mixed_blocks() -> pa.Table:
    """Blocks of two batches, out of order."""
    blank: dict[str, Any] = {column.name: 0 if column.type == "int" else "" for column in TABLES["blocks"].columns}
    blank["day_utc"] = "2026-10-01"
    places = [(batch, number) for number in (3, 1, 2) for batch in "ba"]
    rows = [{**blank, "batch": batch, "number": number, "text": f"{batch}{number}"} for batch, number in places]
    return pa.Table.from_pylist(rows, SCHEMAS["blocks"])


def killed(work: Callable[[], object], step: int) -> bool:
    """Do some work in a process that is killed at its nth effect on a folder; True where it came to its end before."""

    def counted() -> None:
        with _counted(step):
            work()

    return children.done(counted) == 0


@contextmanager
def _counted(step: int) -> Iterator[None]:
    """Before each effect: a file written half or whole, linked, removed."""
    left = [step]

    def effect(before: Callable[..., Any], half: Callable[..., Any] | None = None) -> Callable[..., Any]:
        def counted(*given: Any, **more: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                if half is not None:
                    half(*given)
                os._exit(9)
            return before(*given, **more)

        return counted

    wrote = Path.write_bytes
    Path.write_bytes = effect(wrote, lambda path, content: wrote(path, content[: len(content) // 2]))  # type: ignore[method-assign]
    stores._link = effect(stores._link)
    FolderStore.remove = effect(FolderStore.remove)  # type: ignore[method-assign]
    yield


__all__ = [
    "NAMES",
    "Machine",
    "Rows",
    "age",
    "copies",
    "files",
    "killed",
    "mixed_blocks",
    "rows",
    "say",
    "write",
]
