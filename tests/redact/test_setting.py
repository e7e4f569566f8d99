"""The key of the markers: made once, for its owner alone, whoever makes it at the same time."""

from __future__ import annotations

import errno
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from clew.errors import SourceUnreadable, UsageError
from clew.redact.settings import KEY_FILE, RULES_FILE, UserMarker, load_settings, marker_key


def test_the_key_is_random_and_private(tmp_path: Path) -> None:
    one, other = marker_key(tmp_path / "a"), marker_key(tmp_path / "b")
    assert one != other
    assert len(one) == 32
    assert marker_key(tmp_path / "a") == one
    assert stat.S_IMODE((tmp_path / "a" / KEY_FILE).stat().st_mode) == 0o600
    assert [path.name for path in (tmp_path / "a").iterdir()] == [KEY_FILE]


def test_all_who_make_it_at_once_get_the_same(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: marker_key(tmp_path), range(32)))) == 1


def test_it_is_made_when_something_is_marked(tmp_path: Path) -> None:
    marker = UserMarker(tmp_path / "later")
    assert not (tmp_path / "later").exists()
    assert marker("value", "rule") == UserMarker(tmp_path / "later")("value", "rule")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(SourceUnreadable, match="--redact-plain"):
        marker_key(tmp_path / "no")


def test_a_file_in_the_way_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceUnreadable):
        marker_key(tmp_path / "file")


def test_unknown_profiles_are_refused() -> None:
    with pytest.raises(UsageError, match="profile"):
        load_settings("everything")


def test_rules_of_the_configuration_are_found(own_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert load_settings("secrets").rules is None
    monkeypatch.setenv("CLEW_CONFIG_DIR", str(tmp_path))
    (tmp_path / RULES_FILE).write_text('[[rule]]\nid = "ticket"\npattern = "HARBOUR-[0-9]{5}"\n')
    rules = load_settings("secrets").rules
    assert rules is not None
    assert rules.version != load_settings("secrets", rules=_other(tmp_path)).rules.version  # type: ignore[union-attr]


def _other(folder: Path) -> Path:
    path = folder / "other.toml"
    path.write_text('[[rule]]\nid = "berth"\npattern = "BERTH-[0-9]{5}"\n')
    return path


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EACCES])
def test_a_file_system_without_hard_links_gets_a_key(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refused)
    with ThreadPoolExecutor(8) as pool:
        [key] = set(pool.map(lambda _: marker_key(tmp_path), range(32)))
    assert len(key) == 32
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [KEY_FILE]
