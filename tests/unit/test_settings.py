"""The file of settings, and the addresses that open an editor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clew.errors import SourceUnreadable, UsageError
from clew.host import data_dir
from clew.settings import EDITORS, FILE, Settings, editor_url, load_settings, save_settings


def write(text: str) -> Path:
    path = data_dir() / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_without_a_file_all_are_defaults() -> None:
    assert load_settings() == Settings()


def test_saved_settings_are_loaded_and_private() -> None:
    saved = save_settings({"theme": "dark", "timezone": "Europe/Berlin"})
    assert saved == load_settings() == Settings(theme="dark", timezone="Europe/Berlin")
    path = data_dir() / FILE
    assert path.stat().st_mode & 0o777 == 0o600
    save_settings({"theme": "light"})
    assert load_settings() == Settings(theme="light", timezone="Europe/Berlin")


def test_keys_of_another_version_are_kept() -> None:
    path = write('{"theme": "dark", "wallpaper": {"name": "waves"}}')
    save_settings({"density": "compact"})
    assert json.loads(path.read_text()) == {"theme": "dark", "wallpaper": {"name": "waves"}, "density": "compact"}


@pytest.mark.parametrize("name, value", [("theme", "pink"), ("detail", 3), ("timezone", "Berlin"), ("editor", ["vi"])])
def test_a_value_that_cannot_be_used_is_reported_and_the_others_hold(name: str, value: object) -> None:
    path = write(json.dumps({"density": "compact", name: value}))
    loaded = load_settings()
    assert loaded.density == "compact"
    assert getattr(loaded, name) == getattr(Settings(), name)
    assert len(loaded.problems) == 1
    assert loaded.problems[0].startswith(f"{path}: {name}: ")
    assert save_settings({name: getattr(Settings(), name)}).problems == ()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"theme": "dark",}', b'{"theme": "\xff"}'])
def test_a_broken_file_masks_everything_and_is_not_replaced(content: bytes) -> None:
    path = write("{}")
    path.write_bytes(content)
    loaded = load_settings()
    assert loaded.masking == "all"
    assert loaded.theme == "auto"
    assert "correct or delete the file" in loaded.problems[0]
    with pytest.raises(SourceUnreadable, match="correct or delete"):
        save_settings({"theme": "dark"})
    assert path.read_bytes() == content


def test_an_unknown_profile_masks_everything() -> None:
    write('{"masking": "most"}')
    assert load_settings().masking == "all"


def test_a_file_that_cannot_be_opened_masks_everything() -> None:
    path = data_dir() / FILE
    path.mkdir(parents=True)
    assert load_settings().masking == "all"
    assert str(path) in load_settings().problems[0]


@pytest.mark.parametrize(
    "name, value", [("theme", "pink"), ("wallpaper", "waves"), ("problems", "none"), ("timezone", "Berlin")]
)
def test_a_value_that_cannot_be_used_is_not_saved(name: str, value: str) -> None:
    with pytest.raises(UsageError):
        save_settings({name: value})
    assert not (data_dir() / FILE).exists()


def test_no_editor_no_address() -> None:
    assert editor_url("/home/ada/tide.py", 3) is None


def test_the_address_of_a_file_in_the_chosen_editor() -> None:
    save_settings({"editor": "vscode"})
    assert editor_url("/home/ada/a b#?&%/tide.py", 3) == "vscode://file/home/ada/a%20b%23%3F%26%25/tide.py:3"
    assert editor_url("/home/ada/tide.py") == "vscode://file/home/ada/tide.py:1"
    assert editor_url(r"C:\ada\tide.py", 2) == "vscode://file/C%3A/ada/tide.py:2"
    assert editor_url("/a&line=9", 2, "idea") == "idea://open?file=/a%26line%3D9&line=2"


@pytest.mark.parametrize("editor", EDITORS)
@pytest.mark.parametrize(
    "path",
    [
        *("tide.py", "./tide.py", "", "~/x", "//host/share/x", "\\\\host\\share", "/home/../etc/passwd", r"C:\..\x"),
        *("javascript:alert(1)", "file:///etc/passwd", "/a\nb", "/a\0b", "/\ud800", "/" + "a" * 9999),
    ],
)
def test_other_paths_have_no_address(editor: str, path: str) -> None:
    assert editor_url(path, 1, editor) is None


def test_other_schemes_have_no_address() -> None:
    assert editor_url("/home/ada/tide.py", 1, "javascript") is None
    write('{"editor": "javascript"}')
    assert editor_url("/home/ada/tide.py", 1) is None
