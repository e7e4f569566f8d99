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


def drop_titles_in_other_files(home: Path) -> None:
    """Remove the titles of Claude Code's sessions that are in files of other sessions.

    The catalog knows them; a batch is made of the files of one session, and has the title that they have.
    """
    for path in (home / ".claude/projects").glob("*/*.jsonl"):
        lines = path.read_bytes().splitlines(keepends=True)
        kept = [line for line in lines if not _names_another_file(line, path.read_text())]
        if kept != lines:
            path.write_bytes(b"".join(kept))


def _names_another_file(line: bytes, text: str) -> bool:
    if not line.startswith(b'{"type":"summary"'):
        return False
    return f'"uuid":"{json.loads(line)["leafUuid"]}"' not in text
