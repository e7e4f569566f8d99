"""Answer the catalog's statements from a lake with Spark, and connect to a Spark cluster."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from clew import errors
from clew.errors import ClewError, RemoteFailed, TargetRefused, UsageError
from clew.extras import require_extra
from clew.warehouse.columns import COPIES, TABLES, Table
from clew.warehouse.lake.layout import VERSION_DIR, check_version, no_lake, table_folder
from clew.warehouse.lake.store import absolute_target
from clew.warehouse.merge_sql import merged_tables
from clew.warehouse.urls import mask_urls

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

    from clew.catalog.statements import Statement

_TYPES = {"int": "bigint", "str": "string"}
_CACHED_TABLES = ("current_batches", "visible_messages", "sessions", "tool_calls", "file_changes", "usage")
"""Merged tables that others are made from."""
_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def open_engine(url: str) -> SparkEngine:
    """An engine over `spark://HOST:PORT/FOLDER`, or `spark://HOST:PORT?lake=URL` if the lake is not a folder."""
    master, lake = parse_engine_url(url)
    spark = connect(master)
    try:
        return SparkEngine(spark, lake)
    except BaseException:
        spark.stop()
        raise


def parse_engine_url(url: str) -> tuple[str, str]:
    """The cluster and the lake."""
    parts = urlsplit(url)
    lakes = parse_qs(parts.query).get("lake", [])
    lake = lakes[0] if lakes else parts.path
    if not parts.netloc or lake in ("", "/"):
        # The URL is not repeated: it may hold a password.
        raise UsageError("--engine: name the lake too: spark://HOST:PORT/FOLDER or spark://HOST:PORT?lake=URL")
    return f"spark://{parts.netloc}", absolute_target(lake)


class SparkEngine:
    """Answers statements over a lake as it was when the engine was opened."""

    def __init__(self, spark: SparkSession, lake: str) -> None:
        self._spark, self._lake = spark, lake.rstrip("/")
        self._display_url = mask_urls(lake)
        with translate_errors(self._display_url):
            self._create_views()

    def _create_views(self) -> None:
        spark = self._spark
        # Twice as many tasks as cores: the default of 200 tiny tasks costs more than the work.
        spark.conf.set("spark.sql.shuffle.partitions", max(4, 2 * spark.sparkContext.defaultParallelism))
        check_version(self._version_names(), self._display_url)
        for table in TABLES.values():
            self._copies(table).createOrReplaceTempView(f"{table.name}{COPIES}")
        for name, query in merged_tables(rows_are_unique=False, int_div="div").items():
            view = spark.sql(query)
            (view.cache() if name in _CACHED_TABLES else view).createOrReplaceTempView(name)

    def _version_names(self) -> list[str]:
        """The version marks of the lake; raises UnknownReference if there is no lake."""
        found = self._read(lambda reader: reader.format("binaryFile").load(f"{self._lake}/{VERSION_DIR}"))
        if found is None:
            raise no_lake(self._display_url)
        return [f"{VERSION_DIR}/{row.path.rpartition('/')[2]}" for row in found.select("path").collect()]

    def _read(self, read: Callable[[DataFrameReader], DataFrame]) -> DataFrame | None:
        """The rows of a path; None if it does not exist."""
        from pyspark.errors import AnalysisException

        try:
            # Folders named `day=` and `month=` are not read as columns.
            return read(self._spark.read.option("recursiveFileLookup", "true"))
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            return None

    def _copies(self, table: Table) -> DataFrame:
        """The rows of a table as they were written."""
        columns = ", ".join(f"{column.name} {_TYPES[column.type]}" for column in table.columns)
        found = self._read(lambda reader: reader.schema(columns).parquet(f"{self._lake}/{table_folder(table.name)}"))
        if found is None and table.name == "batches":
            raise no_lake(self._display_url)
        return self._spark.createDataFrame([], columns) if found is None else found

    def ask(self, statement: Statement) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        with translate_errors(self._display_url):
            found = self._spark.sql(statement.text, args=list(statement.values)).collect()
        return [tuple(row) for row in found]

    def close(self) -> None:
        """Stop the Spark session."""
        self._spark.stop()


def connect(master: str | None, name: str = "clew") -> SparkSession:
    """A session of the cluster at `master`; if None, of the cluster that `spark-submit` names."""
    require_extra("spark")
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    for key, value in _SETTINGS.items():
        builder = builder.config(key, value)
    if master is not None:
        builder = builder.master(master).config("spark.log.level", "ERROR")
    # The log of Spark is of interest for a submitted job, not for statistics.
    with connect_errors(master or "spark"), nullcontext() if master is None else silence_stderr():
        return builder.getOrCreate()


@contextmanager
def connect_errors(cluster: str) -> Iterator[None]:
    """Turn the errors of Spark about a cluster that does not answer into one message."""
    with translate_errors(cluster):
        try:
            yield
        except Exception as error:
            if "stopped SparkContext" in str(error) or not _meaningful_lines(error):
                raise RemoteFailed(f"{cluster}: the cluster does not answer") from None
            raise


@contextmanager
def translate_errors(display_url: str) -> Iterator[None]:
    """Turn errors of Spark into ours. Those of its bridge to Java have no common base class."""
    try:
        yield
    except ClewError:
        raise
    except Exception as error:
        reason = mask_urls((_meaningful_lines(error) or [type(error).__name__])[0])
        raise (
            _error_of_worker(error) or _error_of_object(error, display_url) or RemoteFailed(f"{display_url}: {reason}")
        ) from None


def _error_of_worker(error: BaseException) -> ClewError | None:
    """The error of ours that a worker raised; it is in the middle of Spark's message."""
    found = re.search(r"^clew\.errors\.(\w+): (.+)$", str(error), re.MULTILINE)
    kind = getattr(errors, found[1], None) if found else None
    return kind(found[2]) if found and isinstance(kind, type) and issubclass(kind, ClewError) else None


def _error_of_object(error: BaseException, display_url: str) -> ClewError | None:
    """The error for an object that exists and cannot be read."""
    found = re.search(r"FAILED_READ_FILE\.(?!FILE_NOT_EXIST).*(table=\w+/\w+=\S+?\.parquet)", str(error))
    message = f"{display_url}: {found[1]} cannot be read; check it with `clew lake verify`" if found else ""
    return TargetRefused(message) if message else None


@contextmanager
def silence_stderr() -> Iterator[None]:
    """Start child processes without stderr: the Java process writes to it as long as it lives."""
    kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)


def _meaningful_lines(error: BaseException) -> list[str]:
    """The lines of a message, without the first one of the bridge to Java."""
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
    return [line for line in lines if not line.startswith("An error occurred while calling")]
