"""The settings page, and what settings change on other pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clew.host import data_dir
from clew.web import user_settings
from tests.web.shown import Shown, named, shown, words


@pytest.fixture
def app(demo: Shown) -> Shown:
    """The app of all tests. Settings are those of the test: each has a data folder of its own."""
    return demo


def save(app: Shown, status: int = 200, **changes: str) -> dict[str, str]:
    answer = app.post("/settings", {"changes": changes})
    assert answer.status == status, answer.body
    found: dict[str, str] = json.loads(answer.body)
    return found


def checked(app: Shown, path: str) -> set[str]:
    return {element.get("id", "") for element in named(app.page(path), "input") if element.get("checked") is not None}


def session_path(app: Shown) -> str:
    agent, native = app.catalog_row("SELECT agent, native_id FROM session WHERE agent = 'claude-code' LIMIT 1")
    return f"/session/{agent}/{native}"


def test_the_page_shows_every_setting_and_can_be_read_without_script(app: Shown) -> None:
    page = app.page("/settings")
    fields = {element.get("name") for tag in ("select", "input") for element in named(page, tag)}
    assert {"theme", "density", "detail", "timezone", "masking", "editor"} <= fields
    forms = [fieldset for fieldset in named(page, "fieldset") if not fieldset.get("class")]
    assert all(fieldset.get("disabled") is not None for fieldset in forms)
    assert str(data_dir() / user_settings.FILE) in words(page)
    assert "/settings" in [link.get("href") for link in named(app.page("/"), "a")]


def test_theme_level_and_density_hold_for_every_page(app: Shown) -> None:
    assert {"t0", "d3"} <= checked(app, session_path(app))
    save(app, theme="dark", detail="conversation", density="compact")
    assert {"t2", "d1"} <= checked(app, session_path(app))
    assert "compact" in (named(app.page("/sessions"), "body")[0].get("class") or "").split()
    assert user_settings.load() == user_settings.Settings(theme="dark", detail="conversation", density="compact")


def test_the_zone_holds_for_pages_and_the_variable_wins(app: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    path = session_path(app)
    before = words(named(app.page(path), "time"))
    save(app, timezone="Asia/Kathmandu")
    page = app.page(path)
    assert "UTC+05:45" in words(named(page, "footer"))
    assert words(named(page, "time")) != before
    assert "Times are in UTC+05:45" in words(app.page("/usage"))
    assert app.get(f"{path}/print").body.decode().count(" 04:26") == app.get(path).body.decode().count(" 04:26")
    monkeypatch.setenv("CLEW_TIMEZONE", "UTC")
    assert words(named(app.page(path), "time")) == before
    assert "This run uses UTC" in words(app.page("/settings"))


def test_masking_is_the_default_of_every_browser(app: Shown) -> None:
    assert "Masked" not in words(named(app.page("/"), "footer"))
    save(app, masking="all")
    assert "Masked: all." in words(named(app.page("/"), "footer"))
    assert "Masked" not in words(named(app.page("/?redact=none"), "footer"))


def test_settings_that_cannot_be_read_mask_everything_and_are_reported(app: Shown) -> None:
    save(app, masking="secrets")
    (data_dir() / user_settings.FILE).write_text('{"masking": "secrets",')
    page = app.page("/sessions")
    assert "Masked: all." in words(named(page, "footer"))
    assert "Masked: all." in words(named(app.page("/sessions?redact=none"), "footer"))
    assert "correct or delete the file" in words(named(page, "p", "settings-problem"))
    assert "correct or delete the file" in save(app, 400, masking="none")["error"]


def test_masking_of_the_run_cannot_be_stored_away(tmp_path: Path) -> None:
    """A guest of an app that masks must not change what the owner's next run shows."""
    with shown(tmp_path / "home", tmp_path / "catalog", "all") as masked:
        assert "cannot be changed while the app runs with --redact" in save(masked, 400, masking="none")["error"]
    assert not (data_dir() / user_settings.FILE).exists()


def test_a_value_that_cannot_be_used_is_refused(app: Shown) -> None:
    assert save(app, 400, theme="pink")["error"] == "Colours: Invalid enum value 'pink'"
    unknown = "Time zone: unknown time zone 'Berlin'; did you mean Europe/Berlin?"
    assert save(app, 400, timezone="Berlin")["error"] == unknown
    assert app.post("/settings", {"changes": {"theme": 1}}).status == 400
    assert app.post("/settings", {"theme": "dark"}).status == 400
    assert not (data_dir() / user_settings.FILE).exists()


def test_another_site_cannot_change_settings(app: Shown) -> None:
    assert app.post("/settings", {"changes": {"masking": "none"}}, Origin="http://evil.example").status == 403
    assert app.post("/settings", {"changes": {"masking": "none"}}, Content_Type="text/plain").status == 403
    assert not (data_dir() / user_settings.FILE).exists()
