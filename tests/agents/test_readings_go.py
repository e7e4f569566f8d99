"""A reading may hold a whole file: it goes when nobody holds it, and does not wait for the garbage collector."""

from __future__ import annotations

import gc
import io
from pathlib import Path

import pytest

from clew import Host, Library
from clew.export.document import ONE_LINE, write_document
from tests.demo_home import write_small_demo

AGENTS = ("claude-code", "codex", "gemini", "sage-agent", "sage-emacs")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    write_small_demo(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS)
def test_nothing_of_a_reading_waits_for_the_collector(home: Path, agent: str) -> None:
    sessions = list(Library(Host.at(home), agents=[agent]).sources())
    assert sessions
    for session in sessions:
        # What is made once for all sources is made in the first round.
        for is_first in (True, False):
            gc.collect()
            gc.disable()
            try:
                reading = write_document(session.agent, session.source, io.BytesIO(), timestamp="", layout=ONE_LINE)
                kind = type(reading)
                del reading
                left = [each for each in gc.get_objects() if type(each) is kind]
            finally:
                gc.enable()
            assert is_first or not left, f"{session.path}: {len(left)} readings left"
