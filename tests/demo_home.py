"""The hand-written sessions of the demo alone: few enough to count, and with every edge case."""

from pathlib import Path

from clew.datadir import private_folder
from clew.demo import set_file_times
from clew.demo.examples import copy_examples


def write_small_demo(target: Path) -> list[Path]:
    """Write the hand-written sessions into `target`, which must be new or empty; returns the files written."""
    private_folder(str(target))
    written = copy_examples(target)
    set_file_times(written)
    return written
