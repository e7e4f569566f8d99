"""Short ways to ask a history in tests."""

from __future__ import annotations

from clew.agents.file_evidence import ABSENT, FileContent, KnownContent
from clew.file_history.history import FileHistory


def known(history: FileHistory, message: int, path: str) -> tuple[str, bytes | None]:
    """How certain a file is at a message, and its content; None where there was no file, or it is not known."""
    answer = history.at(message, path)
    (state,) = history.contents([answer])
    return answer.certainty, body(state)


def body(state: KnownContent | None) -> bytes | None:
    return state.body if isinstance(state, FileContent) else None


def is_absent(history: FileHistory, message: int, path: str) -> bool:
    """True where it is proved that there was no file."""
    answer = history.at(message, path)
    return answer.certainty == "exact" and history.contents([answer]) == [ABSENT]
