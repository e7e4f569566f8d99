"""A connection to a Spark cluster. All that clew sets is what its answers depend on, and how quiet it is."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from clew import errors
from clew.errors import ClewError, RemoteFailed, TargetRefused
from clew.warehouse.extras import need
from clew.warehouse.lake.store import shown

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
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    for key, value in _SETTINGS.items():
        builder = builder.config(key, value)
    if master is not None:
        builder = builder.master(master).config("spark.log.level", "ERROR")
    # Who submits a job wants to see what Spark says; who asks for statistics does not.
    with reaching(master or "spark"), nullcontext() if master is None else _quiet():
        return builder.getOrCreate()


@contextmanager
def reaching(place: str) -> Iterator[None]:
    """What Spark says where there is nobody: that what it has just begun was stopped, in words of its own."""
    with told(place):
        try:
            yield
        except Exception as error:
            if "stopped SparkContext" in str(error) or not _telling(error):
                raise RemoteFailed(f"{place}: the cluster does not answer") from None
            raise


@contextmanager
def told(place: str) -> Iterator[None]:
    """What Spark says, as one line of ours."""
    try:
        yield
    except ClewError:
        raise
    except Exception as error:
        # What the bridge to Java raises has no common ancestor.
        raise _worker_said(error) or _damaged(error, place) or RemoteFailed(f"{place}: {_reason(error)}") from None


def _worker_said(error: BaseException) -> ClewError | None:
    """What a worker raised on purpose; Spark tells of it in the middle of a page."""
    found = re.search(r"^clew\.errors\.(\w+): (.+)$", str(error), re.MULTILINE)
    kind = getattr(errors, found[1], None) if found else None
    return kind(found[2]) if found and isinstance(kind, type) and issubclass(kind, ClewError) else None


def _damaged(error: BaseException, place: str) -> ClewError | None:
    """What is there and cannot be read; it may be for another reason than that it is damaged."""
    found = re.search(r"FAILED_READ_FILE\.(?!FILE_NOT_EXIST).*(table=\w+/day=\S+?\.parquet)", str(error))
    said = f"{place}: {found[1]} cannot be read; `clew lake verify` tells whether it is damaged" if found else ""
    return TargetRefused(said) if said else None


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


def _telling(error: BaseException) -> list[str]:
    """The lines that say something; the bridge to Java begins with one that does not."""
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
    return [line for line in lines if not line.startswith("An error occurred while calling")]


def _reason(error: BaseException) -> str:
    return shown((_telling(error) or [type(error).__name__])[0])
