"""A connection to a Spark cluster. All that clew sets is what its answers depend on, and how quiet it is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from clew.errors import RemoteFailed
from clew.tables.extras import need

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    # Times and days are derived by us; whatever Spark derives itself must not depend on where it runs.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Partitions are named by days that we spell ourselves.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def connect(master: str | None, name: str = "clew") -> SparkSession:
    """A session of the cluster at `master`; without one, of the cluster that `spark-submit` was told."""
    need("spark")
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    for key, value in _SETTINGS.items():
        builder = builder.config(key, value)
    if master is not None:
        builder = builder.master(master).config("spark.log.level", "ERROR")
    try:
        # Who submits a job wants to see what Spark says; who asks for statistics does not.
        with nullcontext() if master is None else _quiet():
            return builder.getOrCreate()
    except PySparkException as error:
        raise RemoteFailed(f"{master or 'spark'}: {_first_line(error)}") from None
    except Exception as error:
        # What the bridge to Java raises has no common ancestor.
        raise RemoteFailed(f"{master or 'spark'}: the cluster cannot be reached: {_first_line(error)}") from None


@contextmanager
def _quiet() -> Iterator[None]:
    """What is started meanwhile has no standard error: the machine below Spark tells of itself, all its life."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
