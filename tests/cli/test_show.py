"""What `clew show` prints, and what it says where there is nothing to print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import LATEST, clew

SMALL_COST = "bea30fe7"
"""A session of the demo that cost half a cent."""


def write_session(home: Path, content: str) -> None:
    folder = home / ".claude/projects/-tmp-x"
    folder.mkdir(parents=True)
    (folder / "11111111-2222-4333-8444-555555555555.jsonl").write_text(content)


@pytest.mark.parametrize("content", ["", '{"type":"user","mess', "no JSON\n"])
def test_a_session_without_messages_leads_to_validate(tmp_path: Path, content: str) -> None:
    write_session(tmp_path, content)
    ran = clew("--home", tmp_path, "show", "11111111")
    assert ran.code == 0
    assert ran.err == "clew: the session has no messages; `clew validate 11111111` reports damaged records\n"


def test_a_message_without_text_leads_to_its_record(demo: Path) -> None:
    ran = clew("--home", demo, "show", f"{LATEST}#4")
    assert (ran.code, ran.err) == (0, "clew: message 4 has no text; --raw prints its record\n")
    assert clew("--home", demo, "show", f"{LATEST}#4", "--raw").out.count("\n") == 1


def test_a_session_with_text_is_printed_without_a_hint(demo: Path) -> None:
    for reference in (LATEST, f"{LATEST}#3"):
        assert clew("--home", demo, "show", reference).err == ""


def test_a_level_of_detail_without_text_is_said(tmp_path: Path) -> None:
    answer = {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "hello"}]}
    write_session(tmp_path, json.dumps({"type": "assistant", "uuid": "u", "message": answer}) + "\n")
    assert "hello" in clew("--home", tmp_path, "show", "@last").out
    ran = clew("--home", tmp_path, "show", "@last", "--detail", "prompts")
    assert ran.err == "clew: no message has text at this level of detail; --detail full prints all\n"


def test_a_small_cost_is_not_shown_as_nothing(demo: Path) -> None:
    assert "cost $0.0050" in clew("--home", demo, "show", SMALL_COST).out


@pytest.mark.parametrize("word", ["last", "latest", "newest"])
def test_last_without_its_sign_leads_to_it(demo: Path, word: str) -> None:
    ran = clew("--home", demo, "show", word)
    assert (ran.code, ran.err) == (1, f"clew: no session matches '{word}'; @last is the newest\n")
