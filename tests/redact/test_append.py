"""Masking while a session is written: a later process masks what an earlier one masked."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.redact import Marker
from clew.redact.redactor import MaskSettings, Redactor
from clew.store.store import Store
from tests.redact.planted import Planter

PLANT = Planter("append")


def _append(place: Path, text: str, key: bytes | None = b"key") -> None:
    """Append a message as a process of its own would."""
    with Store(place, redact=Redactor(MaskSettings("secrets", Marker(key)))).session("one") as session:
        session.user(text)


@pytest.mark.parametrize("form", ["now use {} there", "with '{}'.", "f({})", "NAME={}", "user:{}", "({}),"])
def test_a_value_that_an_earlier_process_masked_is_masked_without_its_context(tmp_path: Path, form: str) -> None:
    value = PLANT.password()
    _append(tmp_path, f"DB_PASSWORD={value}")
    _append(tmp_path, form.format(value))
    log = (tmp_path / ".sage" / "sessions" / "one" / "messages.jsonl").read_text()
    assert value not in log
    assert log.count("[REDACTED:assigned_password:") >= 2


def _store(place: Path) -> Store:
    """Open a store as another process would."""
    return Store(place, redact=Redactor(MaskSettings("secrets", Marker(b"key"))))


def test_a_session_from_the_list_masks_what_an_earlier_process_masked(tmp_path: Path) -> None:
    value = PLANT.password()
    _append(tmp_path, f"DB_PASSWORD={value}")
    with next(_store(tmp_path).sessions()) as session:
        session.user(f"now use {value} there")
    assert value not in (tmp_path / ".sage" / "sessions" / "one" / "messages.jsonl").read_text()


def test_a_project_masks_what_an_earlier_process_masked(tmp_path: Path) -> None:
    value = PLANT.password()
    for text in (f"DB_PASSWORD={value}", f"now use {value} there"):
        with _store(tmp_path).project("/home/ada/moon") as project:
            project.append("user", text)
    [log] = tmp_path.rglob("conversation.jsonl")
    assert value not in log.read_text()


def test_ordinary_words_stay(tmp_path: Path) -> None:
    _append(tmp_path, f"DB_PASSWORD={PLANT.password()}")
    _append(tmp_path, "an ordinary sentence, with: several (longer) words")
    log = (tmp_path / ".sage" / "sessions" / "one" / "messages.jsonl").read_text()
    assert "an ordinary sentence, with: several (longer) words" in log


def test_a_log_that_is_a_link_is_not_read_for_markers(tmp_path: Path) -> None:
    _append(tmp_path, "hello")
    log = tmp_path / ".sage" / "sessions" / "one" / "messages.jsonl"
    other = tmp_path / "other"
    other.write_text("[REDACTED:assigned_password:abcdefgh]")
    log.unlink()
    log.symlink_to(other)
    redactor = Redactor(MaskSettings("secrets", Marker(b"key")))
    Store(tmp_path, redact=redactor).session("one")
    assert redactor.learn_and_mask("abcdefgh") == "abcdefgh"


def test_short_values_are_masked_everywhere() -> None:
    redactor = Redactor(MaskSettings("secrets", Marker()))
    records = [{"text": "DB_PASS" + "WORD=hunt3r2\nMAIL_PASS" + "WORD=Xy7!qq"}, {"text": "try hunt3r2 or Xy7!qq then"}]
    redactor.learn(records)
    assert redactor.value(records[1]) == {"text": "try [REDACTED] or [REDACTED] then"}
    call = {"type": "tool_use", "id": "toolu_7", "name": "Read", "input": {"file_path": "/app/.env"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_7", "content": "PIN=a1b2c3\nMODE=zq81kk7"}
    other = {"text": "one is a1b2c3, the other zq81kk7."}
    redactor = Redactor(MaskSettings("secrets", Marker()))
    redactor.learn([call, result, other])
    assert redactor.value(other) == {"text": "one is [REDACTED], the other [REDACTED]."}
