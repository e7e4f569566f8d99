"""The file with the settings of the web app."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clew.errors import SourceUnreadable, UsageError
from clew.host import data_dir
from clew.web.user_settings import FILE, Settings, load, save


def write(text: str) -> Path:
    path = data_dir() / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_without_a_file_all_are_defaults() -> None:
    assert load() == Settings()


def test_saved_settings_are_loaded_and_private() -> None:
    saved = save({"theme": "dark", "timezone": "Europe/Berlin"})
    assert saved == load() == Settings(theme="dark", timezone="Europe/Berlin")
    path = data_dir() / FILE
    assert path.stat().st_mode & 0o777 == 0o600
    save({"theme": "light"})
    assert load() == Settings(theme="light", timezone="Europe/Berlin")


def test_keys_of_another_version_are_kept() -> None:
    path = write('{"theme": "dark", "wallpaper": {"name": "waves"}}')
    save({"density": "compact"})
    assert json.loads(path.read_text()) == {"theme": "dark", "wallpaper": {"name": "waves"}, "density": "compact"}


@pytest.mark.parametrize("name, value", [("theme", "pink"), ("detail", 3), ("timezone", "Berlin"), ("editor", ["vi"])])
def test_a_value_that_cannot_be_used_is_reported_and_the_others_hold(name: str, value: object) -> None:
    path = write(json.dumps({"density": "compact", name: value}))
    loaded = load()
    assert loaded.density == "compact"
    assert getattr(loaded, name) == getattr(Settings(), name)
    assert len(loaded.problems) == 1
    assert loaded.problems[0].startswith(f"{path}: {name}: ")
    assert save({name: getattr(Settings(), name)}).problems == ()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"theme": "dark",}', b'{"theme": "\xff"}'])
def test_a_broken_file_masks_everything_and_is_not_replaced(content: bytes) -> None:
    path = write("{}")
    path.write_bytes(content)
    loaded = load()
    assert loaded.masking == "all"
    assert loaded.theme == "auto"
    assert "correct or delete the file" in loaded.problems[0]
    with pytest.raises(SourceUnreadable, match="correct or delete"):
        save({"theme": "dark"})
    assert path.read_bytes() == content


def test_a_message_calls_a_setting_by_its_title() -> None:
    with pytest.raises(UsageError, match=r"^Time zone: unknown time zone 'Berlin'"):
        save({"timezone": "Berlin"}, {"timezone": "Time zone"})


def test_an_unknown_profile_masks_everything() -> None:
    write('{"masking": "most"}')
    assert load().masking == "all"


def test_a_file_that_cannot_be_opened_masks_everything() -> None:
    path = data_dir() / FILE
    path.mkdir(parents=True)
    assert load().masking == "all"
    assert str(path) in load().problems[0]


@pytest.mark.parametrize(
    "name, value", [("theme", "pink"), ("wallpaper", "waves"), ("problems", "none"), ("timezone", "Berlin")]
)
def test_a_value_that_cannot_be_used_is_not_saved(name: str, value: str) -> None:
    with pytest.raises(UsageError):
        save({name: value})
    assert not (data_dir() / FILE).exists()
