"""What pages show of names and paths where secrets are masked: nothing in clear, in no address either."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_plus

import pytest

from clew.annotations import Annotations, Target
from clew.catalog.sync import sync
from clew.host import Host
from clew.store import Store
from clew.web import context
from clew.web.context import MaskingOptions, masking, resolve_reference, set_masking_options
from clew.web.pages.usage import OVERVIEW
from tests.cli.running import run
from tests.counting.homes import SESSION, claude, prompt, reply
from tests.redact.planted import Planter
from tests.render.pages import parse
from tests.web import sessions_with_calls
from tests.web.shown import Shown, links, shown

SECRETS = {name: Planter(f"web {name}").github() for name in ("project", "branch", "model", "tool", "title", "file")}
STORED = Planter("web session").github()
SHOWN_CHARS = 12
"""A secret of which so much is shown was cut before it was masked."""
TYPED = "tangerine42harbour"
"""What only the name of its file tells."""
FILE = f"/srv/{SECRETS['file']}.py"


def write_home(home: Path) -> None:
    """A session whose names hold a secret each, and one of the store whose own id is one."""
    more: dict[str, Any] = {"cwd": f"/srv/{SECRETS['project']}", "gitBranch": f"fix/{SECRETS['branch']}"}
    answer = reply("m1", 1000, 2000, model=f"model-{SECRETS['model']}", **more)
    tools = [("Write", FILE, "x = 1\n"), ("Write", "/srv/.env", f"PLAIN={TYPED}\n"), (SECRETS["tool"], FILE, "")]
    answer["message"]["content"] += [
        {"type": "tool_use", "id": f"toolu_0{at}", "name": name, "input": {"file_path": path, "content": text}}
        for at, (name, path, text) in enumerate(tools)
    ]
    results = prompt("", uuid="results", **more)
    results["message"]["content"] = [
        {"type": "tool_result", "tool_use_id": f"toolu_0{at}", "content": "ok"} for at in range(3)
    ]
    claude(home, prompt(f"sail with {SECRETS['title']}", **more), answer, results)
    with Store(home).session(STORED) as session:
        session.user("sail again")


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("masked")
    write_home(folder / "home")
    with shown(folder / "home", folder / "catalog", "secrets") as app:
        yield app


PAGES = [
    "/",
    "/running",
    "/sessions",
    "/sessions?project=srv",
    "/search?q=sail",
    "/search?q=NOT+zebra",
    f"/compare?left=claude-code:{SESSION}&right=claude-code:{SESSION}",
    f"/compare?left=claude-code:{SESSION}",
    "/compare",
    f"/session/claude-code/{SESSION}/hits?q=sail",
    f"/session/claude-code/{SESSION}/hits?q={SECRETS['title']}",
    f"/session/claude-code/{SESSION}?find={SECRETS['title']}",
    "/session-list",
    "/session-list?q=sail&group=project",
    "/palette",
    "/palette?q=sail",
    "/palette?q=srv",
    "/files",
    "/sources",
    "/usage",
    *(f"/usage.csv?chart={name}" for name in OVERVIEW),
    *(f"/usage?by={by}" for by in ("day", "week", "month", "model", "agent", "project", "tool")),
    *(f"/usage.csv?by={by}" for by in ("day", "model", "agent", "project", "tool")),
    *(f"/session/claude-code/{SESSION}{part}" for part in ("", "/print", "/outline", "/graph", "/window/0")),
    *(
        f"/session/claude-code/{SESSION}/panel/{panel}"
        for panel in ("timeline", "files", "todos", "usage", "record?message=2", "problems")
    ),
]


def held(text: str) -> list[str]:
    """The names of the secrets that a text shows, or the beginning of, also in its addresses."""
    plain = unquote_plus(unescape(text))
    known = {**SECRETS, "stored": STORED}
    return [name for name, secret in known.items() if secret[:SHOWN_CHARS] in text + plain]


def shown_by(app: Shown, path: str, **headers: str) -> str:
    answer = app.get(path, **headers)
    assert answer.status == 200, (path, answer.status, answer.body[:300])
    return answer.body.decode() + "\n".join(f"{name}: {value}" for name, value in answer.headers.items())


@pytest.mark.slow
def test_no_page_shows_a_secret_and_no_address_holds_one(masked: Shown) -> None:
    for path in PAGES:
        assert held(shown_by(masked, path)) == [], path
        if path.startswith(("/search", "/sessions", "/session/")):
            assert held(shown_by(masked, path, X_Clew="1")) == [], path


@pytest.mark.slow
def test_whatever_is_linked_opens_and_shows_no_secret(masked: Shown) -> None:
    """Every address that pages of this server lead to, as far as they go."""
    waiting, met, usage_pages = ["/", "/search?q=sail"], set[str](), 0
    while waiting and len(met) < 400:
        # Pages near to the first come first.
        path = waiting.pop(0)
        if path in met or path.startswith(("/static", "/secrets")):
            continue
        if path.startswith("/usage"):
            # Presets, groupings and tables of usage have many combinations.
            usage_pages += 1
            if usage_pages > 80:
                continue
        met.add(path)
        body = shown_by(masked, path)
        assert held(body) == [], path
        if "content-disposition: attachment" not in body.lower():
            found = links(masked.page(path))
            waiting += [place.partition("#")[0] for place in found]
            waiting += [unescape(place) for place in re.findall(r'data-load="([^"]+)"', body)]
    for part in (
        "/files/history?",
        "/files/changes?",
        "/files/blame?",
        "/search?",
        "/session/sage-agent/",
        "/compare?",
        "/usage/table?",
    ):
        assert any(path.startswith(part) for path in met), part
    assert not any(held(path) for path in met)


def test_a_masked_group_leads_to_its_sessions(masked: Shown) -> None:
    page = masked.page("/usage")
    for name in ("project", "model", "tool"):
        places = [place for place in links(page) if f"used.{name}=~" in place]
        assert places, name
        for place in places:
            assert re.search(r"1 session\b", shown_by(masked, place)), place
            assert f'name="used.{name}" value="~' in shown_by(masked, place)


def test_a_masked_facet_narrows_the_search(masked: Shown) -> None:
    page = masked.page("/search?q=sail")
    narrowed = [place for place in links(page) if "project=" in place]
    assert narrowed
    for place in narrowed:
        assert "sail" in shown_by(masked, place), place


def test_a_masked_path_leads_to_its_file(masked: Shown) -> None:
    (place,) = [place for place in links(masked.page("/files")) if place.startswith("/files/history?path=~")]
    assert "/srv/[REDACTED" in shown_by(masked, place)
    assert masked.get("/files/history?path=~0123456789abcdef01234567").status == 404


def test_a_credential_file_is_masked_because_of_its_name(masked: Shown) -> None:
    (place,) = [place for place in links(masked.page("/files")) if ".env" in place]
    for address in (place, place.replace("history", "blame")):
        assert TYPED not in shown_by(masked, address)
    (changes,) = [place for place in links(masked.page(place)) if "/files/changes" in place]
    assert "PLAIN=" in shown_by(masked, changes)
    assert TYPED not in shown_by(masked, changes)


@pytest.mark.slow
def test_without_masking_everything_is_shown(tmp_path: Path) -> None:
    write_home(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        assert held(shown_by(app, "/files")) == ["file"]
        assert "model" in held(shown_by(app, "/"))
        assert "project" in held(shown_by(app, "/usage.csv?by=project"))
        assert "/files/history?path=" + quote(FILE, safe="") in shown_by(app, "/files")
        assert held(shown_by(app, "/usage.csv?by=project&redact=secrets")) == []
        assert held(shown_by(app, "/files?redact=secrets")) == []


@pytest.mark.slow
def test_pages_obey_the_rules_of_the_person(tmp_path: Path) -> None:
    claude(
        tmp_path / "home", prompt("sail to Saint-Malo", cwd="/srv/Saint-Malo"), reply("m1", 1, 2, cwd="/srv/Saint-Malo")
    )
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "clew" / "redaction.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[[rule]]\nid = "harbour"\npattern = "Saint-Malo"\n')
    other = tmp_path / "other.toml"
    other.write_text('[[rule]]\nid = "verb"\npattern = "sail"\n')
    with shown(tmp_path / "home", tmp_path / "catalog", "secrets") as app:
        for path in ("/", "/sessions", "/search?q=sail", "/usage.csv?by=project", f"/session/claude-code/{SESSION}"):
            assert "Saint-Malo" not in shown_by(app, path), path
        # What --rules and --redact-plain say.
        set_masking_options(MaskingOptions(plain=True, rules=other))
        try:
            text = shown_by(app, "/sessions")
        finally:
            set_masking_options(MaskingOptions())
        assert "[REDACTED] to Saint-Malo" in text


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--redact", "none"), ("--redact", "secrets")], ids=" ".join)
def test_rules_that_cannot_be_used_are_reported_at_the_start(tmp_path: Path, words: tuple[str, ...]) -> None:
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "clew" / "redaction.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[[rules]\n")
    done = run("--home", tmp_path, "web", "--port", "0", "--no-sync", *words)
    assert (done.code, done.out) == (2, "")
    assert "redaction.toml" in done.err and "Traceback" not in done.err


def test_the_references_used_least_recently_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "MAX_REFERENCED_VALUES", 2)
    monkeypatch.setattr(context, "_referenced_values", OrderedDict())
    one, two, three = SECRETS["project"], SECRETS["branch"], SECRETS["model"]
    references = [masking("secrets").reference(secret) for secret in (one, two)]
    assert resolve_reference(references[0]) == one
    references.append(masking("secrets").reference(three))
    assert [resolve_reference(reference) for reference in references] == [one, references[1], three]


def test_the_spellings_of_hits_are_masked_by_what_the_whole_session_tells(tmp_path: Path) -> None:
    """A password that a prompt names is known where it stands alone, also if the session has read a credential file."""
    word = Planter("hits").github()[4:20]
    answer = reply("m1", 10, 20)
    answer["message"]["content"] += [
        {"type": "tool_use", "id": "toolu_01", "name": "Read", "input": {"file_path": "/srv/.env"}}
    ]
    texts = [f"The login is DB_PASSWORD={word}", f"Then it used {word} to log in"]
    claude(tmp_path / "home", prompt(texts[0]), answer, prompt(texts[1]))
    with shown(tmp_path / "home", tmp_path / "catalog", "secrets") as app:
        for query in (f"q={word[:4]}", f"q={word}"):
            assert word not in shown_by(app, f"/session/claude-code/{SESSION}/hits?{query}")


def test_the_button_says_what_it_does_and_what_is_shown_now(demo: Shown, masked: Shown) -> None:
    def button(app: Shown, more_cookies: str = "") -> tuple[str | None, str | None, str | None]:
        answer = app.ask("/", Cookie=app.cookie() + more_cookies)
        found = next(one for one in parse(answer.body.decode()).iter("button") if one.get("id") == "mask")
        return found.text, found.get("title"), found.get("data-profile")

    assert button(demo) == ("Hide secrets", "Secrets are shown in this browser", "secrets")
    hidden = ("Show secrets", "Secrets are hidden in this browser", "none")
    assert button(demo, "; clew-redact=secrets") == hidden
    assert button(masked) == ("Secrets hidden", "Masking is on for as long as this app runs", None)


LEARNED = "zanzibar-lion-93"
"""No rule finds it: only a credential file that the session has read tells that it is a secret."""


@pytest.mark.parametrize("is_gone", [False, True], ids=["live", "gone"])
def test_titles_and_notes_are_masked_by_what_the_session_tells(tmp_path: Path, is_gone: bool) -> None:
    session, home = "0f6a1c52-0000-4000-8000-0000000000aa", tmp_path / "home"
    records = [
        sessions_with_calls.prompt(session, 1, f"Why is {LEARNED} rejected"),
        sessions_with_calls.call(session, 2, "Read", {"file_path": "/srv/.env"}),
        sessions_with_calls.result(session, 3, 2, f"DB_PASSWORD={LEARNED}\n"),
        sessions_with_calls.answer(session, 4, "It has expired."),
    ]
    path = sessions_with_calls.write_session(home, session, records)
    sync([Host.at(home)], tmp_path / "catalog")
    if is_gone:
        path.unlink()
    target = Target("claude-code", session)
    Annotations().change(target, starred=True, note=f"Try {LEARNED} again")
    page = f"/session/claude-code/{session}"
    pages = {
        page: "rejected",
        f"{page}/print": "rejected",
        f"{page}/annotations": "again",
        f"/compare?left=claude-code:{session}&right=claude-code:{session}": "rejected",
        "/annotations": "again",
        "/annotations.json": "again",
    }
    with shown(home, tmp_path / "catalog", "secrets") as app:
        for address, word in pages.items():
            body = app.get(address).body.decode()
            assert word in body, address
            assert LEARNED not in body, address
