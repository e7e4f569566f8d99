"""`clew convert --report`, the warning about versions that were not tested, and --title."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path

import pytest

from clew.agents import registry
from tests.cli.running import FORKED, LATEST, clew


def test_a_report_holds_counts_and_hashes_and_no_content(demo: Path, tmp_path: Path) -> None:
    home, report = tmp_path / "home", tmp_path / "report.json"
    words = ("--home", demo, "convert", LATEST, "--to", "codex", "--home", home, "--allow-loss", "--report", report)
    done = clew(*words, "--json")
    assert done.code == 0
    found = json.loads(report.read_text())
    assert found.keys() == {"report_version", "clew_version", "source", "target", "losses", "notes"}
    files = {file["name"]: file["sha256"] for file in found["target"]["files"]}
    assert files == {
        Path(name).name: hashlib.sha256(Path(name).read_bytes()).hexdigest() for name in done.json["files"]
    }
    before, after = found["source"]["counts"], found["target"]["counts"]
    assert before["tool_use"] == after["tool_use"] > 0 and before["tool_result"] == after["tool_result"]
    assert found["source"]["client_version"] and found["target"]["agent"] == "codex"
    text = report.read_text()
    document = json.loads(clew("--home", demo, "export", LATEST).raw)
    texts = [block["text"] for each in document["messages"] for block in each["content"] if block["type"] == "text"]
    assert texts and not [each for each in texts if each[:20] in text]
    assert str(tmp_path) not in text and "/" not in "".join(file["name"] for file in found["source"]["files"])


def test_a_report_replaces_no_file(demo: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text("mine")
    words = ("--home", demo, "convert", LATEST, "--to", "codex", "--home", tmp_path / "home", "--allow-loss")
    assert clew(*words, "--report", report).code == 6
    assert report.read_text() == "mine" and not (tmp_path / "home").exists()
    assert clew(*words, "--report", tmp_path / "other.json", "--dry-run").code == 2


def test_a_report_that_cannot_be_written_stops_before_anything_is(demo: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link.json").symlink_to(tmp_path / "nowhere.json")
    words = ("--home", demo, "convert", LATEST, "--to", "gemini", "--home", tmp_path / "home", "--allow-loss")
    refused = {tmp_path / "none" / "r.json": 3, tmp_path / "file" / "r.json": 3, tmp_path / "link.json": 6}
    if os.geteuid():
        refused[closed / "r.json"] = 3
    for report, code in refused.items():
        done = clew(*words, "--report", report)
        assert (done.code, done.out) == (code, "") and str(report) in done.err
        assert not (tmp_path / "home").exists()


def test_files_are_listed_even_if_the_report_fails_later(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, _content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr("clew.cli.command_convert.create", fail)
    words = ("--home", demo, "convert", LATEST, "--to", "gemini", "--home", tmp_path / "home", "--allow-loss")
    done = clew(*words, "--report", tmp_path / "r.json")
    assert done.code == 3 and "r.json" in done.err and "continue with: " in done.err
    assert done.out and all(Path(line).is_file() for line in done.out.splitlines())


def install(folder: Path, version: str) -> str:
    """Install a fake Codex as npm does; returns the PATH."""
    package = folder / "lib" / "node_modules" / "@openai" / "codex"
    (package / "bin").mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"version": version}))
    program = package / "bin" / "codex.js"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    (folder / "bin").mkdir()
    (folder / "bin" / "codex").symlink_to(program)
    return str(folder / "bin")


@pytest.mark.parametrize(("version", "is_warned"), [("0.1.0", False), ("999.0.0", True)])
def test_a_version_that_was_not_tested_is_reported(
    version: str, is_warned: bool, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", install(tmp_path / "npm", version))
    words = ("--home", demo, "convert", FORKED, "--to", "codex", "--home", tmp_path / "home", "--allow-loss")
    done = clew(*words)
    assert done.code == 0
    assert (f"Codex CLI {version} is newer than" in done.err) is is_warned
    resumed = clew("--home", demo, "resume", FORKED, "--to", "codex", "--home", tmp_path / "home", "--dry-run")
    assert (f"Codex CLI {version} is newer than" in resumed.err) is is_warned


def test_agents_shows_the_newest_tested_version(demo: Path) -> None:
    rows = {row["id"]: row for row in clew("agents", "--home", demo, "--json").json}
    assert rows["codex"]["newest_tested_version"] == registry.get("codex").newest_tested_version
    assert rows["sage-agent"]["newest_tested_version"] is None


def test_a_title_of_the_new_session(demo: Path, tmp_path: Path) -> None:
    words = ("--home", demo, "convert", FORKED, "--home", tmp_path, "--allow-loss", "--title", "The moon again")
    assert clew(*words, "--to", "codex").code == 0
    (row,) = clew("list", "--home", tmp_path, "--json").json
    assert row["title"] == "The moon again"
    assert clew(*words, "--to", "claude-code").code == 2


def test_a_title_names_the_session_to_convert(demo: Path, tmp_path: Path) -> None:
    title = next(row["title"] for row in clew("list", "--home", demo, "--json").json if row["id"] == FORKED)
    done = clew("--home", demo, "convert", title, "--to", "codex", "--home", tmp_path, "--dry-run", "--json")
    by_id = clew("--home", demo, "convert", FORKED, "--to", "codex", "--home", tmp_path, "--dry-run", "--json")
    assert done.json == by_id.json
