"""A real Spark standalone cluster on loopback: one master and two workers, each a process of its own."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"


def missing() -> str | None:
    """Why there can be no cluster here; None where there can."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed"
    if shutil.which("java") is None:
        return "there is no Java; on Debian or Ubuntu: apt install default-jre-headless"
    return None


class Cluster:
    """A master and its workers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._spark = Path(str(importlib.util.find_spec("pyspark").origin)).parent  # type: ignore[union-attr]
        self.master = self._start("master", _MASTER, "--port", "0")
        self.url = self._logged("master", r"Starting Spark master at (spark://\S+)")
        self._logged("master", r"(New state: ALIVE)")
        self.workers = [self._worker(number) for number in (1, 2)]
        for number in (1, 2):
            self._logged(f"worker{number}", r"(Successfully registered with master)")

    def _worker(self, number: int) -> subprocess.Popen[bytes]:
        work = self._folder / f"work{number}"
        more = ("--cores", "1", "--memory", "1g", "--work-dir", str(work), self.url)
        return self._start(f"worker{number}", _WORKER, *more)

    def env(self) -> dict[str, str]:
        """What processes of the cluster, and who speaks with it, are given."""
        own = {
            "SPARK_HOME": str(self._spark),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_DAEMON_MEMORY": "512m",
        }
        return {**os.environ, **own, "HOME": str(self._folder), "CLEW_DATA_DIR": str(self._folder / "data")}

    def _start(self, name: str, role: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(self._spark / "bin" / "spark-class"), role, "--host", "127.0.0.1", "--webui-port", "0"]
        with (self._folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [*command, *arguments], stdout=log, stderr=log, env=self.env(), cwd=self._folder, start_new_session=True
            )

    def _logged(self, name: str, wanted: str, seconds: float = 180) -> str:
        """The first place in a log that says so; waits for it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = re.search(wanted, (self._folder / f"{name}.log").read_text(errors="replace"))
            if found:
                return found[1]
            time.sleep(0.2)
        raise TimeoutError(f"{name}: {(self._folder / f'{name}.log').read_text(errors='replace')[-2000:]}")

    def executors(self, number: int) -> list[int]:
        """The processes that do the work of a worker."""
        found = []
        for status in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = status.read_bytes().decode(errors="replace")
            except OSError:
                continue
            if "CoarseGrainedExecutorBackend" in words and str(self._folder / f"work{number}") in _cwd(status.parent):
                found.append(int(status.parent.name))
        return found

    def kill(self, number: int) -> None:
        """Kill a worker and all that it runs, as a machine that loses its power."""
        for process in self.executors(number):
            os.kill(process, signal.SIGKILL)
        os.killpg(self.workers[number - 1].pid, signal.SIGKILL)
        self.workers[number - 1].wait()

    def revive(self, number: int) -> None:
        """Start a worker again."""
        (self._folder / f"worker{number}.log").unlink()
        self.workers[number - 1] = self._worker(number)
        self._logged(f"worker{number}", r"(Successfully registered with master)")

    def stop(self) -> None:
        """End all of it."""
        for number, worker in enumerate(self.workers, 1):
            if worker.poll() is None:
                self.kill(number)
        os.killpg(self.master.pid, signal.SIGKILL)
        self.master.wait()


def _cwd(process: Path) -> str:
    try:
        return str((process / "cwd").readlink())
    except OSError:
        return ""


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """A cluster that lives as long as it is needed."""
    found = Cluster(folder)
    try:
        yield found
    finally:
        found.stop()
