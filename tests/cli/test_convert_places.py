"""Where clew convert and clew resume look, where they write, and what they refuse."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from clew.store import Store
from tests.cli.running import FORKED, clew
from tests.cli.test_convert import PLAIN

FOLDER = ".claude/projects/-home-ada-src-tidepool"


def original(demo: Path) -> Path:
    return demo / FOLDER / f"{PLAIN}.jsonl"


class TestAFileThatLiesElsewhere:
    @pytest.fixture
    def copy(self, demo: Path, tmp_path: Path) -> Path:
        """In a folder of the person's own, which happens to lie below one called projects."""
        path = tmp_path / "projects/backup" / f"{PLAIN}.jsonl"
        path.parent.mkdir(parents=True)
        shutil.copy(original(demo), path)
        return path

    def test_it_goes_where_its_agent_looks_for_it(self, copy: Path, tmp_path: Path) -> None:
        done = clew("convert", copy, "--to", "claude-code", "--home", tmp_path / "home", "--json")
        assert done.code == 0
        assert Path(done.json["files"][0]).parent == tmp_path / "home" / FOLDER

    def test_it_comes_back_to_where_its_agent_looks_for_it(self, copy: Path, tmp_path: Path) -> None:
        there = clew("convert", copy, "--to", "codex", "--home", tmp_path / "there", "--json").json
        back = clew("convert", there["files"][0], "--to", "claude-code", "--home", tmp_path / "back", "--json").json
        (file,) = map(Path, back["files"])
        assert file == tmp_path / "back" / FOLDER / f"{PLAIN}.jsonl"
        assert file.read_bytes() == copy.read_bytes()


class TestAFileThatItsAgentDoesNotFind:
    @pytest.mark.parametrize("name", ["my session.jsonl", f"{PLAIN}.jsonl.gz", f"{PLAIN} copy.jsonl"])
    def test_it_is_converted_before_it_is_resumed(self, demo: Path, tmp_path: Path, name: str) -> None:
        path = tmp_path / FOLDER / name
        path.parent.mkdir(parents=True)
        content = original(demo).read_bytes()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        done = clew("resume", path, "--home", tmp_path, "--json")
        assert done.code == 0, done.err
        identity = done.json["argv"][-1]
        assert (tmp_path / FOLDER / f"{identity}.jsonl").is_file()

    def test_one_that_it_finds_is_left_alone(self, demo: Path, tmp_path: Path) -> None:
        path = tmp_path / FOLDER / f"{PLAIN}.jsonl"
        path.parent.mkdir(parents=True)
        shutil.copy(original(demo), path)
        done = clew("resume", PLAIN, "--home", tmp_path, "--print", "--json")
        assert done.json["argv"] == ["claude", "--resume", PLAIN]
        assert [path] == [each for each in tmp_path.rglob("*") if each.is_file()]


@pytest.mark.parametrize("target", ["codex", "claude-code"])
def test_an_id_of_two_words_comes_back(tmp_path: Path, target: str) -> None:
    with Store(tmp_path / "home").session("two words") as session:
        session.user("How high is the tide?")
    path = session.folder / "messages.jsonl"
    there = clew("convert", path, "--to", target, "--home", tmp_path / "there", "--json")
    assert there.code == 0, there.err
    back = clew("convert", there.json["files"][0], "--to", "sage-agent", "--home", tmp_path / "back", "--json")
    assert back.code == 0, back.err
    assert Path(back.json["files"][0]).read_bytes() == path.read_bytes()
    assert back.json["resume"] == ["sage", "-r", "two words"]


def test_a_message_is_not_converted(demo: Path, tmp_path: Path) -> None:
    for reference in (f"{PLAIN}#3", f"{original(demo)}#3"):
        done = clew("--home", demo, "convert", reference, "--to", "codex", "--home", tmp_path / "home")
        assert done.code == 2
        assert "--branch" in done.err
    assert not (tmp_path / "home").exists()


def test_a_dry_run_finds_what_is_in_the_way(demo: Path, tmp_path: Path) -> None:
    words: list[str | Path] = ["--home", demo, "convert", FORKED, "--to", "codex", "--home", tmp_path, "--allow-loss"]
    path = Path(clew(*words, "--dry-run", "--json").json["files"][0])
    path.mkdir(parents=True)
    real, dry = clew(*words), clew(*words, "--dry-run")
    assert (real.code, dry.code) == (6, 6)
    assert "exists already" in real.err and "exists already" in dry.err


def test_a_dry_run_of_what_was_converted_before_prints_the_command(demo: Path, tmp_path: Path) -> None:
    words: list[str | Path] = ["--home", demo, "convert", FORKED, "--to", "codex", "--home", tmp_path, "--allow-loss"]
    first = clew(*words)
    command = next(line for line in first.err.splitlines() if line.startswith("continue with: "))
    dry = clew(*words, "--dry-run")
    assert dry.code == 0
    assert command in dry.err.splitlines() and "it was converted before" in dry.err
    assert dry.out.splitlines() == first.out.splitlines()[:1]


def test_what_was_converted_before_is_told_how_to_go_on_with(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    words: list[str | Path] = ["--home", demo, "convert", PLAIN, "--to", "codex", "--home", tmp_path, "--allow-loss"]
    first = clew(*words, "--json")
    again = clew(*words)
    assert again.code == 6
    command = f"cd -- /home/ada/src/tidepool && HOME={tmp_path} codex resume {first.json['session_id']}"
    assert f"it was converted before; continue with: {command}" in again.err


def test_the_command_to_go_on_with_is_complete(demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    words: list[str | Path] = ["--home", demo, "convert", PLAIN, "--to", "codex", "--allow-loss"]
    done = clew(*words, "--home", tmp_path / "new")
    assert f"continue with: cd -- /home/ada/src/tidepool && HOME={tmp_path / 'new'} codex resume " in done.err
    assert f"created {tmp_path / 'new'}\n" in done.err
    done = clew(*words, "--home", tmp_path / "new", "--cwd", tmp_path)
    assert f"continue with: cd -- {tmp_path} && HOME={tmp_path / 'new'} codex resume " in done.err
    assert "created" not in done.err


def test_an_original_that_is_there_was_not_converted(demo: Path, tmp_path: Path) -> None:
    there = clew("--home", demo, "convert", PLAIN, "--to", "codex", "--home", tmp_path, "--allow-loss", "--json")
    back = clew("--home", tmp_path, "convert", there.json["session_id"], "--to", "claude-code", "--home", demo)
    assert back.code == 6
    assert "exists already" in back.err and "converted before" not in back.err


def test_a_threads_name_that_has_no_place_is_a_loss(tmp_path: Path) -> None:
    meta = {"id": "019c0000-0000-7000-8000-000000000001", "cwd": "/home/ada", "timestamp": "2026-03-02T10:00:00Z"}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "ring"}]}
    lines = [("session_meta", meta), ("response_item", said)]
    folder = tmp_path / ".codex/sessions/2026/03/02"
    folder.mkdir(parents=True)
    path = folder / f"rollout-2026-03-02T10-00-00-{meta['id']}.jsonl"
    time = "2026-03-02T10:00:00.000Z"
    records = [{"timestamp": time, "type": kind, "payload": payload} for kind, payload in lines]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    words: list[str | Path] = ["convert", path, "--to", "sage-emacs", "--home", tmp_path / "there", "--dry-run"]
    words.append("--json")
    assert clew(*words).json["losses"] == []
    named = {"id": meta["id"], "thread_name": "Bells of Bow", "updated_at": time}
    (tmp_path / ".codex/session_index.jsonl").write_text(json.dumps(named) + "\n")
    assert [loss["what"] for loss in clew(*words).json["losses"]] == ["the title"]
