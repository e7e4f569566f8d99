"""Statements of `catalog/statements.py`, answered by a cluster over a lake with the numbers that the catalog gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from clew.errors import RemoteFailed, TargetRefused, UsageError
from clew.spark.session import connect
from clew.tables.columns import COPIES, TABLES, Table
from clew.tables.merging import merged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from clew.catalog.statements import Statement

_TYPES = {"int": "bigint", "str": "string"}
_KEPT = ("current_batches", "shown_messages", "sessions", "tool_calls", "file_changes", "usage")
"""Tables that others are made from: computed once, held by the workers, computed again where one is lost."""


def open_engine(url: str) -> SparkEngine:
    """An engine over `spark://HOST:PORT/FOLDER`, or `spark://HOST:PORT?lake=URL` for a lake that is no folder."""
    master, lake = parted(url)
    return SparkEngine(connect(master), lake)


def parted(url: str) -> tuple[str, str]:
    """The cluster and the lake that a name of an engine means."""
    found = urlsplit(url)
    lakes = parse_qs(found.query).get("lake", [])
    lake = lakes[0] if lakes else found.path
    if not found.netloc or lake in ("", "/"):
        raise UsageError(f"{url}: name the lake too: spark://HOST:PORT/FOLDER or spark://HOST:PORT?lake=URL")
    return f"spark://{found.netloc}", lake


class SparkEngine:
    """Answers statements over one lake as it was when it was opened."""

    def __init__(self, spark: SparkSession, lake: str) -> None:
        self._spark, self._lake = spark, lake.rstrip("/")
        # As many tasks as the cluster has cores for, twice: hundreds of tiny ones cost more than the work.
        spark.conf.set("spark.sql.shuffle.partitions", max(4, 2 * spark.sparkContext.defaultParallelism))
        for table in TABLES.values():
            self._copies(table).createOrReplaceTempView(f"{table.name}{COPIES}")
        for name, text in merged(unique=False).items():
            view = spark.sql(text)
            (view.cache() if name in _KEPT else view).createOrReplaceTempView(name)

    def _copies(self, table: Table) -> DataFrame:
        """The rows of a table as they lie in the lake; none where it has none."""
        from pyspark.errors import AnalysisException

        columns = ", ".join(
            f"{column.name} {'bigint' if column.type == 'int' else 'string'}" for column in table.columns
        )
        try:
            return self._spark.read.schema(columns).parquet(f"{self._lake}/table={table.name}")
        except AnalysisException as error:
            if table.name == "batches":
                raise TargetRefused(f"{self._lake}: there is no lake") from error
            return self._spark.createDataFrame([], columns)

    def ask(self, statement: Statement) -> list[tuple[Any, ...]]:
        """The rows of an answer."""
        from pyspark.errors import PySparkException

        try:
            found = self._spark.sql(statement.text, args=list(statement.values)).collect()
        except PySparkException as error:
            raise RemoteFailed(f"spark: {str(error).splitlines()[0]}") from error
        return [tuple(row) for row in found]

    def close(self) -> None:
        """Let go of the cluster."""
        self._spark.stop()
