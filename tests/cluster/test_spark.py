"""A real cluster: the job of spark-submit and the statements, also with a worker lost in the middle."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.ask_engine import TEN
from tests.cluster.spark_cluster import Cluster
from tests.demo_home import write_self_contained_demo

LIMIT = 600
"""Seconds that a job may take on a busy machine."""


class World:
    """A home with its archive, and programs that run beside the cluster."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.folder, self.cluster = folder, cluster
        self.env = {**cluster.env(), "CLEW_DATA_DIR": str(folder / "data"), "HOME": str(folder / "home")}
        write_self_contained_demo(folder / "home")
        self.run("-m", "clew", "archive", "--archive", str(folder / "archive"))

    def run(self, *words: str) -> str:
        done = subprocess.run([sys.executable, *words], env=self.env, capture_output=True, timeout=LIMIT, check=False)
        assert done.returncode == 0, done.stderr.decode()[-3000:]
        return done.stdout.decode()

    def submit(self, lake: Path, *more: str) -> subprocess.Popen[bytes]:
        """Start the job as anybody would."""
        job = self.run("-m", "clew", "lake", "spark-job").strip()
        submit = Path(self.env["SPARK_HOME"]) / "bin" / "spark-submit"
        words = [str(submit), "--master", self.cluster.url, "--conf", "spark.ui.enabled=false", "--executor-memory"]
        words += ["512m", "--driver-memory", "512m", job, str(self.folder / "archive"), str(lake), "--level", "raw"]
        return subprocess.Popen([*words, *more], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def answers(self, engine: str, names: tuple[str, ...] = TEN) -> dict[str, Any]:
        lines = self.run("-m", "tests.cluster.ask_engine", engine, *names).splitlines()
        return dict(json.loads(line) for line in lines)

    def own_answers(self) -> dict[str, Any]:
        """What the catalog on this machine says."""
        self.run("-m", "clew", "sync")
        return self.answers("sqlite")


@pytest.fixture(scope="module")
def world(spark_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    yield World(tmp_path_factory.mktemp("world"), spark_cluster)


def ended(job: subprocess.Popen[bytes]) -> dict[str, Any]:
    out, err = job.communicate(timeout=LIMIT)
    assert job.returncode == 0, err.decode()[-3000:]
    report: dict[str, Any] = json.loads(out.decode().strip().splitlines()[-1])
    return report


def wait_for(is_so: Any) -> None:
    end = time.monotonic() + LIMIT
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_the_job_writes_a_lake_whose_answers_are_those_of_the_catalog(world: World) -> None:
    lake = world.folder / "lake"
    report = ended(world.submit(lake))
    assert report["written"] == report["sources"] > 20
    assert report["unreadable"] == 0
    own = world.own_answers()
    assert world.answers(f"duckdb:{lake}") == own
    assert world.answers(f"{world.cluster.url}{lake}") == own
    again = ended(world.submit(lake))
    assert (again["written"], again["objects"], again["unchanged"]) == (0, 0, report["sources"])


def test_a_job_that_loses_a_worker_writes_the_same_lake(world: World) -> None:
    lake = world.folder / "lake-with-loss"
    job = world.submit(lake, "--parts", "24")
    wait_for(lambda: any(lake.glob("table=batches/*/*.parquet")) or job.poll() is not None)
    assert job.poll() is None, "the job was over before a worker could be killed"
    world.cluster.kill(1)
    try:
        report = ended(job)
    finally:
        world.cluster.revive(1)
    assert report["unreadable"] == 0
    assert world.answers(f"duckdb:{lake}") == world.own_answers()


def test_answers_are_the_same_when_a_worker_is_lost_between_them(world: World) -> None:
    lake = world.folder / "lake-asked"
    world.run("-m", "clew", "lake", "write", str(lake), "--level", "raw")
    words = [sys.executable, "-m", "tests.cluster.ask_engine", f"{world.cluster.url}{lake}", *TEN]
    asked = subprocess.Popen(words, env=world.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert asked.stdout is not None
    first = asked.stdout.readline()
    world.cluster.kill(2)
    try:
        out, err = asked.communicate(timeout=LIMIT)
    finally:
        world.cluster.revive(2)
    assert asked.returncode == 0, err.decode()[-3000:]
    assert dict(json.loads(line) for line in (first + out).splitlines()) == world.own_answers()


def test_statistics_are_printed_from_the_cluster(world: World) -> None:
    lake = world.folder / "lake-for-stats"
    world.run("-m", "clew", "lake", "write", str(lake), "--level", "raw")
    world.run("-m", "clew", "sync")
    wanted = json.loads(world.run("-m", "clew", "stats", "--by", "model", "--json"))
    found = json.loads(
        world.run("-m", "clew", "stats", "--by", "model", "--json", "--engine", f"{world.cluster.url}{lake}")
    )
    assert found == wanted


def test_a_cluster_that_is_down_is_one_clear_line(world: World) -> None:
    words = [sys.executable, "-m", "clew", "stats", "--engine", f"spark://127.0.0.1:1{world.folder}/lake"]
    done = subprocess.run(words, env=world.env, capture_output=True, timeout=LIMIT, check=False)
    assert done.returncode == 7
    lines = done.stderr.decode().strip().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("clew: ")
