"""Statements of `catalog/statements.py`, answered by a cluster over a lake with the numbers that the catalog gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from clew.errors import UsageError
from clew.warehouse.columns import COPIES, TABLES, Table
from clew.warehouse.lake.layout import MARKS, check_marks, folder_of, no_lake
from clew.warehouse.lake.store import absolute, shown
from clew.warehouse.merge_sql import merged
from clew.warehouse.spark.session import connect, told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

    from clew.catalog.statements import Statement

_TYPES = {"int": "bigint", "str": "string"}
_KEPT = ("current_batches", "shown_messages", "sessions", "tool_calls", "file_changes", "usage")
"""Tables that others are made from: computed once, held by the workers, computed again where one is lost."""


def open_engine(url: str) -> SparkEngine:
    """An engine over `spark://HOST:PORT/FOLDER`, or `spark://HOST:PORT?lake=URL` for a lake that is no folder."""
    master, lake = parted(url)
    spark = connect(master)
    try:
        return SparkEngine(spark, lake)
    except BaseException:
        spark.stop()
        raise


def parted(url: str) -> tuple[str, str]:
    """The cluster and the lake that a name of an engine means."""
    found = urlsplit(url)
    lakes = parse_qs(found.query).get("lake", [])
    lake = lakes[0] if lakes else found.path
    if not found.netloc or lake in ("", "/"):
        # What was given may hold a password.
        raise UsageError("--engine: name the lake too: spark://HOST:PORT/FOLDER or spark://HOST:PORT?lake=URL")
    return f"spark://{found.netloc}", absolute(lake)


class SparkEngine:
    """Answers statements over one lake as it was when it was opened."""

    def __init__(self, spark: SparkSession, lake: str) -> None:
        self._spark, self._lake = spark, lake.rstrip("/")
        self._shown = shown(lake)
        with told(self._shown):
            self._make()

    def _make(self) -> None:
        """All tables, over the objects that are there."""
        spark = self._spark
        # As many tasks as the cluster has cores for, twice: hundreds of tiny ones cost more than the work.
        spark.conf.set("spark.sql.shuffle.partitions", max(4, 2 * spark.sparkContext.defaultParallelism))
        check_marks(self._marks(), self._shown)
        for table in TABLES.values():
            self._copies(table).createOrReplaceTempView(f"{table.name}{COPIES}")
        for name, text in merged(unique=False, divided_by="div").items():
            view = spark.sql(text)
            (view.cache() if name in _KEPT else view).createOrReplaceTempView(name)

    def _marks(self) -> list[str]:
        """The marks of the lake, by their names there; raises where there is none."""
        found = self._read(lambda reader: reader.format("binaryFile").load(f"{self._lake}/{MARKS}"))
        if found is None:
            raise no_lake(self._shown)
        return [f"{MARKS}/{row.path.rpartition('/')[2]}" for row in found.select("path").collect()]

    def _read(self, read: Callable[[DataFrameReader], DataFrame]) -> DataFrame | None:
        """What is read from a path; None where there is none."""
        from pyspark.errors import AnalysisException

        try:
            return read(self._spark.read)
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            return None

    def _copies(self, table: Table) -> DataFrame:
        """The rows of a table as they lie in the lake; none where it has none."""
        columns = ", ".join(f"{column.name} {_TYPES[column.type]}" for column in table.columns)
        found = self._read(lambda reader: reader.schema(columns).parquet(f"{self._lake}/{folder_of(table.name)}"))
        if found is None and table.name == "batches":
            raise no_lake(self._shown)
        return self._spark.createDataFrame([], columns) if found is None else found

    def ask(self, statement: Statement) -> list[tuple[Any, ...]]:
        """The rows of an answer."""
        with told(self._shown):
            found = self._spark.sql(statement.text, args=list(statement.values)).collect()
        return [tuple(row) for row in found]

    def close(self) -> None:
        """Let go of the cluster."""
        self._spark.stop()
