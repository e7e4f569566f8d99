"""The job for spark-submit: brings a lake up to date with an archive.

    spark-submit --master spark://HOST:7077 "$(python -m clew.warehouse.spark)" ARCHIVE LAKE [--level LEVEL]

ARCHIVE is a folder that `clew archive` writes; every worker must be able to read it, and to write to LAKE. clew with
its extras `lake` and `spark` is installed where the driver and the workers run Python (PYSPARK_PYTHON). Masking happens
on the workers, before anything is written. The job can be killed and repeated at any time.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from clew.errors import ClewError
from clew.warehouse.columns import LEVELS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    given = _arguments(arguments)
    from clew.warehouse.publisher import writer
    from clew.warehouse.spark.ingesting import run
    from clew.warehouse.spark.session import connect

    try:
        spark = connect(None, "clew lake")
        try:
            report = run(spark, Path(given.archive), given.lake, writer(given.level), given.parts)
        finally:
            spark.stop()
    except ClewError as error:
        print(f"clew: {error}", file=sys.stderr)
        return error.exit_code
    for problem in report.unreadable:
        print(f"clew: {problem}", file=sys.stderr)
    print(json.dumps({**report._asdict(), "unreadable": len(report.unreadable)}))
    return 3 if report.unreadable else 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("clew lake job", description="Bring a lake up to date with an archive, on Spark.")
    parser.add_argument("archive", metavar="ARCHIVE", help="folder that `clew archive` writes")
    parser.add_argument("lake", metavar="LAKE", help="folder or URL of the lake")
    parser.add_argument("--level", choices=LEVELS, default=LEVELS[0], help="how much of a session may leave")
    parser.add_argument("--parts", type=int, help="how many parts the archive is cut into")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
