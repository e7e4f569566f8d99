"""Answers of `clew mcp` say where the catalog may lack something."""

from pathlib import Path

import pytest

from clew.catalog import sync_process
from clew.catalog.sync_process import Progress, SyncUpdate
from clew.host import Host
from clew.mcp.freshness import Freshness
from tests.web.live_session import session_file


def test_a_sync_that_cannot_be_started_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise OSError("too many processes")

    session_file(tmp_path / "home")
    monkeypatch.setattr(sync_process, "start_process", fail)
    (note,) = Freshness([Host.at(tmp_path / "home")], tmp_path / "catalog").notes()
    assert "failed" in note
    assert "too many processes" in caplog.text


def test_a_sync_that_is_interrupted_leaves_no_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    update = SyncUpdate([Host.at(tmp_path)], tmp_path / "catalog")

    def fail(*_: object) -> None:
        update.progress = Progress("sessions", 50)
        raise OSError("the pipe is gone")

    monkeypatch.setattr(sync_process, "start_process", lambda *_: None)
    monkeypatch.setattr(sync_process, "read_result", fail)
    with pytest.raises(OSError, match="pipe"):
        update.run()
    assert update.progress is None
