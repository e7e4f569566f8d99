"""Conversations of sage-emacs go where the Emacs of a home reads: it has one folder of two."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.rollouts import THREAD, answered, asked, meta, write
from tests.agents.test_sage_emacs import message
from tests.agents.test_sage_emacs import write as write_conversation
from tests.cli.running import clew

PLAIN, XDG = ".emacs.d", ".config/emacs"
BASES = [f"{PLAIN}/sage", f"{XDG}/sage", ".sage", ".claude"]
PLACE = "projects/-home-ada-src-tide/conversation.jsonl"


def made(home: Path, *names: str) -> Path:
    """A home with some folders, and files where the name says so."""
    home.mkdir(exist_ok=True)
    for name in names:
        if name.endswith("/"):
            (home / name).mkdir(parents=True)
        else:
            (home / name).touch()
    return home


@pytest.fixture
def rollout(tmp_path: Path) -> Path:
    return write(tmp_path / "codex", meta(), *asked("one"), *answered("two"), thread=THREAD)


def conversation(home: Path, base: str) -> Path:
    talk = [message(content="one", session_id="s1"), message("assistant", "two", session_id="s1")]
    return write_conversation(home / base / PLACE, *talk)


def placed(home: Path) -> list[str]:
    """The conversations in a home."""
    return [path.relative_to(home).as_posix() for path in home.rglob("conversation.jsonl")]


@pytest.mark.parametrize(
    ("there", "emacs"),
    [
        ([], PLAIN),
        ([f"{PLAIN}/"], PLAIN),
        ([f"{XDG}/"], XDG),
        ([f"{XDG}/", f"{PLAIN}/"], PLAIN),
        # With its oldest start-up file, Emacs does not look at the other folder.
        ([f"{XDG}/", ".emacs"], PLAIN),
    ],
)
def test_another_agents_session_goes_to_the_folder_that_emacs_reads(
    tmp_path: Path, rollout: Path, there: list[str], emacs: str
) -> None:
    home = made(tmp_path / "home", *there)
    ran = clew("convert", rollout, "--to", "sage-emacs", "--home", home, "--dry-run", "--json")
    assert ran.json["files"][0] == str(home / emacs / "sage" / PLACE)
    assert clew("convert", rollout, "--to", "sage-emacs", "--home", home).code == 0
    assert placed(home) == [f"{emacs}/sage/{PLACE}"]
    back = clew("convert", home / emacs / "sage" / PLACE, "--to", "codex", "--home", tmp_path / "back", "--json")
    assert Path(back.json["files"][0]).read_bytes() == rollout.read_bytes()


@pytest.mark.parametrize("base", BASES)
def test_a_conversation_comes_back_to_the_folder_it_was_in(tmp_path: Path, base: str) -> None:
    path = conversation(tmp_path / "home", base)
    there = clew("convert", path, "--to", "gemini", "--home", tmp_path / "there", "--json").json["files"][0]
    assert clew("convert", there, "--to", "sage-emacs", "--home", made(tmp_path / "back")).code == 0
    document = tmp_path / "document.json"
    assert clew("export", path, "--to", "json", "-o", document).code == 0
    assert clew("import", document, "-o", made(tmp_path / "imported")).code == 0
    for home in (tmp_path / "back", tmp_path / "imported"):
        assert placed(home) == [f"{base}/{PLACE}"]
        assert (home / base / PLACE).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(("base", "emacs"), [(PLAIN, XDG), (XDG, PLAIN)])
def test_a_conversation_comes_back_to_a_home_whose_emacs_reads_the_other_folder(
    tmp_path: Path, base: str, emacs: str
) -> None:
    path = conversation(tmp_path / "home", f"{base}/sage")
    there = clew("convert", path, "--to", "gemini", "--home", tmp_path / "there", "--json").json["files"][0]
    back, imported = made(tmp_path / "back", f"{emacs}/"), made(tmp_path / "imported", f"{emacs}/")
    assert clew("convert", there, "--to", "sage-emacs", "--home", back).code == 0
    document = tmp_path / "document.json"
    assert clew("export", path, "--to", "json", "-o", document).code == 0
    assert clew("import", document, "-o", imported).code == 0
    assert placed(back) == placed(imported) == [f"{emacs}/sage/{PLACE}"]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own home, whose Emacs is told where its folder is."""
    home = made(tmp_path / "own")
    for name, value in (("HOME", home), ("USERPROFILE", home), ("XDG_CONFIG_HOME", home / "cfg")):
        monkeypatch.setenv(name, str(value))
    return home


@pytest.mark.parametrize(
    ("there", "emacs"),
    [
        ([], PLAIN),
        (["cfg/emacs/"], "cfg/emacs"),
        ([f"{XDG}/"], PLAIN),
        (["cfg/emacs/", f"{PLAIN}/"], PLAIN),
        (["cfg/emacs/", ".emacs"], PLAIN),
    ],
)
def test_at_home_it_goes_where_the_environment_says_that_emacs_reads(
    own: Path, rollout: Path, there: list[str], emacs: str
) -> None:
    made(own, *there)
    ran = clew("convert", rollout, "--to", "sage-emacs", "--home", own, "--json")
    assert ran.json["files"][0] == str(own / emacs / "sage" / PLACE)
    assert placed(own) == [f"{emacs}/sage/{PLACE}"]
    assert clew("show", ran.json["session_id"]).code == 0


def test_the_environment_says_nothing_of_another_home(own: Path, tmp_path: Path, rollout: Path) -> None:
    made(own, "cfg/emacs/")
    other = made(tmp_path / "other", f"{XDG}/")
    assert clew("convert", rollout, "--to", "sage-emacs", "--home", other).code == 0
    assert placed(other) == [f"{XDG}/sage/{PLACE}"]
    assert placed(own) == []


def test_a_conversation_comes_back_to_where_the_environment_says(own: Path, tmp_path: Path) -> None:
    path = conversation(own, "cfg/emacs/sage")
    before = path.read_bytes()
    there = clew("convert", path, "--to", "gemini", "--home", tmp_path / "there", "--json").json["files"][0]
    document = tmp_path / "document.json"
    assert clew("export", path, "--to", "json", "-o", document).code == 0
    for back in (("convert", there, "--to", "sage-emacs", "--home", own), ("import", document, "-o", own)):
        path.unlink()
        assert clew(*back).code == 0
        assert placed(own) == [f"cfg/emacs/sage/{PLACE}"]
        assert path.read_bytes() == before
