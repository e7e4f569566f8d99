"""The engine over a cluster without one: what it makes of what Spark says."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from clew.errors import ClewError, RemoteFailed, TargetRefused, UnknownReference, UsageError
from clew.warehouse.spark import engine, job
from clew.warehouse.spark.engine import SparkEngine, connect_errors, open_engine, parse_engine_url, translate_errors
from clew.warehouse.spark.job import Job, write_part

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'clew[spark]'")
from pyspark.errors import AnalysisException

WORD = "sesame" + "-4711"


class Frame:
    """Rows, or views of them; only names are asked for."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = paths

    def select(self, _: str) -> Frame:
        return self

    def collect(self) -> list[Any]:
        return [type("Row", (), {"path": path})() for path in self._paths]

    def createOrReplaceTempView(self, _: str) -> None:
        """Nothing to do."""

    def cache(self) -> Frame:
        return self


class Spark:
    """A session that finds what it is told to find; a path that is not named is not there."""

    def __init__(self, marks: list[str] | None, failure: Exception | None = None) -> None:
        self._marks, self._failure = marks, failure
        self.stopped = False
        self.read = self.conf = self.sparkContext = self
        self.defaultParallelism = 2

    def set(self, *_: object) -> None:
        """Nothing to do."""

    def option(self, *_: str) -> Spark:
        return self

    def format(self, _: str) -> Spark:
        return self

    def schema(self, _: str) -> Spark:
        return self

    def load(self, path: str) -> Frame:
        if self._marks is None:
            raise missing(path)
        return Frame([f"file:{path}/{mark}" for mark in self._marks])

    def parquet(self, path: str) -> Frame:
        if self._failure is not None:
            raise self._failure
        if path.rstrip("/").endswith("table=todos"):
            raise missing(path)
        return Frame([])

    def createDataFrame(self, *_: object) -> Frame:
        return Frame([])

    def sql(self, *_: object, **__: object) -> Frame:
        return Frame([])

    def stop(self) -> None:
        self.stopped = True


def missing(path: str) -> AnalysisException:
    return AnalysisException(errorClass="PATH_NOT_FOUND", messageParameters={"path": path}, message=f"no {path}")


def other(message: str) -> AnalysisException:
    return AnalysisException(errorClass="UNABLE_TO_INFER_SCHEMA", messageParameters={"format": "x"}, message=message)


def opened(monkeypatch: pytest.MonkeyPatch, spark: Spark, lake: str = "/srv/lake") -> SparkEngine:
    monkeypatch.setattr(engine, "connect", lambda _: spark)
    return open_engine(f"spark://host:7077?lake={lake}")


def test_a_table_without_rows_is_empty_and_a_lake_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = Spark(["schema=1"])
    opened(monkeypatch, spark).close()
    assert spark.stopped


@pytest.mark.parametrize(
    ("spark", "kind"),
    [
        (Spark(["schema=1", "schema=99"]), TargetRefused),
        (Spark(None), UnknownReference),
        (Spark(["schema=1"], other("what is there is no Parquet")), RemoteFailed),
        (
            Spark(["schema=1"], RuntimeError("An error occurred while calling o5.x.\n: java.lang.X: no s3a")),
            RemoteFailed,
        ),
    ],
    ids=["newer", "missing", "not understood", "no jars"],
)
def test_a_lake_that_cannot_be_asked_is_told_and_the_cluster_let_go(
    monkeypatch: pytest.MonkeyPatch, spark: Spark, kind: type[ClewError]
) -> None:
    """What is not there is told from what cannot be read: that would count as no rows."""
    with pytest.raises(kind) as failed:
        opened(monkeypatch, spark, f"s3a://mira:{WORD}@bucket/lake")
    assert spark.stopped
    assert WORD not in str(failed.value)
    assert "An error occurred" not in str(failed.value)


def test_a_name_that_is_refused_does_not_tell_its_password() -> None:
    with pytest.raises(UsageError) as refused:
        parse_engine_url(f"spark:?lake=s3a://mira:{WORD}@bucket/lake")
    assert WORD not in str(refused.value)


def test_what_a_worker_raised_on_purpose_keeps_its_exit_code() -> None:
    said = "An exception was thrown.\nTraceback\nclew.errors.TargetRefused: /lake: no space left\n"
    with pytest.raises(TargetRefused, match=r"^/lake: no space left$"), translate_errors("spark"):
        raise RuntimeError(said)


def test_a_part_looks_again_where_objects_were_merged_meanwhile(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    tries: list[int] = []

    def states(*_: object) -> dict[tuple[object, ...], int]:
        tries.append(1)
        if len(tries) == 1:
            raise FileNotFoundError("merged into another")
        raise RemoteFailed("enough")

    monkeypatch.setattr(job, "known_states", states)
    who: Any = type("Who", (), {"origin": "00"})()
    with pytest.raises(RemoteFailed, match="enough"):
        write_part(Job(str(tmp_path), str(tmp_path / "lake"), who, 1), 0)
    assert len(tries) == 2


def test_places_are_the_same_for_workers_that_start_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    seen: list[Job] = []

    class Numbers:
        sparkContext = type("Context", (), {"defaultParallelism": 1})()

        def range(self, *_: int) -> Numbers:
            return self

        def mapInArrow(self, work: partial[Any], _: str) -> Numbers:
            seen.extend(work.args)
            return self

        def collect(self) -> list[Any]:
            return []

    spark: Any = Numbers()
    job.run_job(spark, Path("kept"), "srv/lake", Any, parts=1)  # type: ignore[arg-type]
    assert (seen[0].archive, seen[0].lake) == (str(tmp_path / "kept"), str(tmp_path / "srv/lake"))
    assert parse_engine_url("spark://host:7077?lake=srv/lake")[1] == str(tmp_path / "srv/lake")


def test_a_cluster_that_does_not_answer_is_told_in_words() -> None:
    said = "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext."
    for text in (said, f"{said}\n: java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext."):
        with (
            pytest.raises(RemoteFailed, match=r"^spark://h:1: the cluster does not answer$"),
            connect_errors("spark://h:1"),
        ):
            raise RuntimeError(text)


def test_an_object_that_cannot_be_read_is_named() -> None:
    name = "table=usage/day=2026-10-01/0f.parquet"
    said = f"org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error in file:///l/{name}. "
    wanted = rf"^/l: {name} cannot be read; check it with `clew lake verify`"
    with pytest.raises(TargetRefused, match=wanted), translate_errors("/l"):
        raise RuntimeError(said)
    with pytest.raises(RemoteFailed), translate_errors("/l"):
        raise RuntimeError(said.replace("NO_HINT", "FILE_NOT_EXIST"))
