"""The hand-written sessions of the demo alone: few enough to count, and with every edge case."""

import json
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


def write_self_contained_demo(target: Path) -> None:
    """The same, without the titles of Claude Code's sessions that are in files of other sessions.

    The catalog knows them; a batch is made of the files of one session, and has the title that they have.
    """
    write_small_demo(target)
    for path in (target / ".claude/projects").glob("*/*.jsonl"):
        text = path.read_bytes().decode()
        lines = text.splitlines(keepends=True)
        kept = [line for line in lines if not _names_another_file(line, text)]
        if kept != lines:
            path.write_bytes("".join(kept).encode())


def _names_another_file(line: str, text: str) -> bool:
    if not line.startswith('{"type":"summary"'):
        return False
    return f'"uuid":"{json.loads(line)["leafUuid"]}"' not in text
