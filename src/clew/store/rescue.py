"""Plain copies of what somebody changed, where a person finds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from clew.io.within import Change, Within
from clew.store.steps import Step
from clew.store.system import FOLDER_MODE, SYSTEM, make_folder

EARLIER = "earlier"
"""The folder for versions of a file that another one has the place of."""


def rescue(conflicts: Sequence[Step], folder: Path | None) -> Path | None:
    """Keep copies in the folder; returns it, or None where there is nothing to keep."""
    kept = list(_copies(conflicts))
    if not kept or folder is None:
        return None
    make_folder(SYSTEM, folder)
    with Within(folder, apart=True) as copies:
        copies.apply(kept)
    for inner in folder.rglob("*"):
        if inner.is_dir() and not inner.is_symlink():
            inner.chmod(FOLDER_MODE)
    return folder


def _copies(conflicts: Sequence[Step]) -> Iterator[Change]:
    tops = {step.path.partition("/")[0] for step in conflicts}
    for step in conflicts:
        for number, body in enumerate(_versions(step)):
            above = EARLIER + (str(number) if number > 1 else "")
            while above in tops:
                above += "-"
            yield Change(step.path if not number else f"{above}/{step.path}", body, 0o600)


def _versions(step: Step) -> list[bytes]:
    """What somebody made of a file, the last first, each once."""
    now = [step.there] if step.is_changed_since else []
    made = [one.made for one in reversed(step.between)]
    return list(dict.fromkeys(body for body in (*now, *made) if body is not None))
