"""Stars, labels and notes in the web app: shown, changed, filtered, exported and imported."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element

import pytest

from clew.annotations import AnnotationIndex, Annotations, Target
from clew.catalog.ids import session_key
from clew.host import data_dir
from tests.cli.running import FORKED, LATEST
from tests.counting.homes import SESSION
from tests.redact.planted import Planter
from tests.render.hostile import HOSTILE
from tests.web.shown import Shown, links, named, shown, words
from tests.web.test_masking import write_home

PAGE = f"/session/claude-code/{LATEST}"
KEY = session_key("claude-code", LATEST)
TARGET = Target("claude-code", LATEST)
SECRET = Planter("annotations").github()


@pytest.fixture
def app(demo: Shown) -> Shown:
    """The app of all tests. Annotations are those of the test: each has a data folder of its own."""
    return demo


def change(app: Shown, status: int = 200, **body: Any) -> dict[str, Any]:
    answer = app.post("/annotations", {"session": KEY, **body})
    assert answer.status == status, answer.body
    found: dict[str, Any] = json.loads(answer.body)
    return found


def summary(app: Shown, path: str = PAGE) -> Element:
    (found,) = [element for element in named(app.page(path), "div") if element.get("id") == "annotations"]
    return found


def test_a_session_is_starred_labelled_and_noted(app: Shown) -> None:
    (star,) = named(summary(app), "button", "star-button")
    assert (star.get("aria-pressed"), star.get("hidden")) == ("false", "")
    assert change(app, starred=True, add_labels=["Sea"], note="see\nbelow") == {"starred": True}
    found = summary(app)
    assert named(found, "button", "star-button")[0].get("aria-pressed") == "true"
    assert words(named(found, "a", "label")) == "Sea" and words(named(found, "p", "own-note")) == "see below"
    assert words(app.part(f"{PAGE}/annotations")) == words(found)
    change(app, starred=False, remove_labels=["SEA"], note="")
    assert Annotations().all() == []


def test_messages_are_marked_by_their_own_id(app: Shown) -> None:
    change(app, message=2, starred=True, add_labels=["salt"], note="look")
    (found,) = Annotations().all()
    assert found.message == 2 and found.message_id
    (item,) = [element for element in summary(app).iter("li") if element.get("data-message")]
    assert (item.get("data-message"), item.get("data-starred")) == ("2", "1")
    assert words(item) == "#2 ★ salt look"
    assert named(item, "a", "which")[0].get("href") == f"{PAGE}#m2"
    change(app, message=2, starred=False)
    assert Annotations().get(found.target).labels == ("salt",)


def test_lists_show_stars_and_labels_and_filter_by_them(app: Shown) -> None:
    change(app, starred=True, add_labels=["sea"])
    app.post("/annotations", {"session": session_key("claude-code", FORKED), "message": 1, "add_labels": ["sea"]})
    beside = named(app.part(f"/session-list?current={KEY}"), "span", "star")
    assert len(beside) == 1
    starred = app.page("/sessions?starred=1")
    assert [place for place in links(starred) if place.startswith("/session/")] == [PAGE]
    assert named(starred, "span", "star") and words(named(starred, "a", "label")) == "sea"
    both = {place for place in links(app.page("/sessions?label=SEA")) if place.startswith("/session/")}
    assert both == {PAGE, f"/session/claude-code/{FORKED}"}
    assert not [place for place in links(app.page("/sessions?label=sea&label=none")) if place.startswith("/session/")]
    (box,) = [box for box in named(starred, "input") if box.get("name") == "starred"]
    assert box.get("checked") is not None
    assert "1 session match" in words(app.part("/sessions?starred=1"))
    change(app, starred=False)
    assert "0 sessions match" in words(app.part("/sessions?starred=1")), "a result must not be cached"
    assert f"/session/claude-code/{FORKED}" in links(app.page("/search?q=moon&label=sea"))


def own_hits(app: Shown, address: str) -> list[str]:
    found = [part for part in named(app.part(address), "section", "group") if "Your titles" in words(part)]
    return [str(link) for part in found for link in links(part)]


def test_a_search_finds_titles_labels_and_notes_of_the_user(app: Shown) -> None:
    assert own_hits(app, "/search?q=hagel") == []
    Annotations().change(TARGET, title="Hagel am Abend", add_labels=["salt water"])
    change(app, message=2, note="Ask the harbour master\nabout zephyrs")
    for query in (
        "hagel",
        "abe",
        "%22hagel+am%22",
        "hagel+water",
        "hagel+-morgen",
        "nothing+OR+hagel",
        "hagel&in=titles",
    ):
        assert own_hits(app, f"/search?q={query}") == [PAGE], query
    assert own_hits(app, "/search?q=zephyr") == [f"{PAGE}#m2"]
    assert "Nothing else was found" in words(app.part("/search?q=zephyr"))
    for query in ("hagel+-abend", "-morgen", "agel", "hagel&agent=gemini", "hagel&in=prompts", "zephyr&in=titles"):
        assert own_hits(app, f"/search?q={query}") == [], query
    assert own_hits(app, "/search?q=hagel&agent=claude-code") == [PAGE]
    assert "/search?q=hagel" in links(app.part("/sessions?text=hagel")), "filters say where they are found"


def test_a_search_does_not_find_what_is_masked_in_a_note(app: Shown) -> None:
    secret = Planter("note").github()
    change(app, note=f"Key {secret} of the harbour")
    assert own_hits(app, f"/search?q={secret}") == [PAGE]
    for query in (secret, "harbour"):
        assert secret not in app.get(f"/search?q={query}&redact=secrets", X_Clew="1").body.decode().partition("<h2>")[2]
    assert own_hits(app, f"/search?q={secret}&redact=secrets") == []
    assert own_hits(app, "/search?q=harbour&redact=secrets") == [PAGE]


def test_lists_tell_a_starred_message_from_a_starred_session(app: Shown) -> None:
    def stars(path: str) -> set[tuple[str | None, str]]:
        return {(star.get("title"), words(star)) for star in named(app.part(path), "span", "star")}

    paths = ("/sessions", f"/session-list?current={KEY}")
    change(app, message=2, starred=True)
    assert [stars(path) for path in paths] == [{("a message is starred", "☆")}] * 2
    change(app, starred=True)
    assert [stars(path) for path in paths] == [{("starred", "★")}] * 2
    change(app, starred=False)
    change(app, message=2, starred=False)
    assert [stars(path) for path in paths] == [set(), set()]


def test_a_search_is_narrowed_by_label_and_star(app: Shown) -> None:
    assert "label=" not in " ".join(links(app.page("/search?q=midnight")))
    change(app, message=1, add_labels=["salt water"])
    change(app, starred=True)
    places = [place for place in links(app.page("/search?q=midnight")) if "label=" in place or "starred=" in place]
    assert places == ["/search?q=midnight&label=salt+water", "/search?q=midnight&starred=1"]
    for place in places:
        found = app.page(place)
        assert {link.partition("#")[0].partition("?")[0] for link in links(found) if link.startswith("/session/")} == {
            PAGE
        }
        assert "/search?q=midnight" in links(found), "the facet can be taken back"


def test_several_labels_are_chosen_and_each_is_taken_back(app: Shown) -> None:
    change(app, add_labels=["salt", "sea", "sky"])
    for address in ("/search?q=midnight", "/annotations?"):
        joint = "&" if address.endswith("midnight") else ""
        chosen = f"{address}{joint}label=sea&label=SALT"
        places = set(links(app.page(chosen)))
        assert {f"{address}{joint}label=SALT", f"{address}{joint}label=sea"} <= places
        assert f"{chosen}&label=sky" in places
    form = app.page("/sessions?label=SEA&label=salt&label=none")
    boxes = {box.get("value"): "checked" in box.attrib for box in named(form, "input") if box.get("name") == "label"}
    assert boxes == {"salt": True, "sea": True, "sky": False, "none": True}


def test_sessions_with_one_prompt_can_be_hidden(app: Shown) -> None:
    page = app.page("/sessions?min_prompts=2")
    (box,) = [box for box in named(page, "input") if box.get("name") == "min_prompts"]
    assert box.get("value") == "2" and "checked" in box.attrib
    assert "Hide single-prompt sessions" in words(named(page, "main"))
    fields = named(app.page("/search?q=a&min_prompts=3"), "input")
    assert [field.get("value") for field in fields if field.get("name") == "min_prompts"] == ["3"]
    assert "unknown number" in words(app.page("/sessions?min_prompts=many", status=400))


def test_annotations_are_read_once_until_they_change(app: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    change(app, starred=True)
    os.utime(Annotations().path, (1_700_000_000, 1_700_000_000))
    reads: list[Annotations] = []
    read = Annotations.index

    def read_and_count(store: Annotations) -> AnnotationIndex:
        reads.append(store)
        return read(store)

    monkeypatch.setattr(Annotations, "index", read_and_count)
    for address in ("/sessions?starred=1", "/annotations", PAGE, f"/session-list?current={KEY}", "/palette"):
        app.get(address)
    assert len(reads) == 1
    change(app, add_labels=["sea"])
    assert "sea" in words(app.page("/sessions"))


def test_pages_do_not_wait_long_for_a_writer(app: Shown) -> None:
    change(app, starred=True)
    app.get("/sessions")
    db = sqlite3.connect(Annotations().path, isolation_level=None)
    db.execute("BEGIN EXCLUSIVE")
    started = time.monotonic()
    assert named(app.page("/sessions"), "span", "star"), "as they were before"
    assert time.monotonic() - started < 5
    db.close()


def test_the_page_lists_all_annotations(app: Shown) -> None:
    assert "Nothing is marked yet" in words(app.page("/annotations"))
    change(app, starred=True, note="mine")
    change(app, message=2, add_labels=["salt"], note="look")
    Annotations().change(Target("codex", "gone-for-good", "m1", 7), add_labels=["salt"], note="kept")
    page = app.page("/annotations")
    assert {PAGE, f"{PAGE}#m2", "/annotations.json"} <= set(links(page))
    text = words(named(page, "main"))
    assert "codex:gone-for-good" in text and "not in the catalog" in text and "kept" in text
    assert len(words(named(page, "p", "excerpt"))) > 10
    only = words(named(app.page("/annotations?label=salt"), "main"))
    assert "mine" not in only and "look" in only and "kept" in only
    assert "mine" in words(app.part("/annotations?starred=1"))


def test_an_annotation_without_a_session_can_be_removed(app: Shown) -> None:
    Annotations().change(Target("codex", "gone-for-good", "m1", 7), add_labels=["salt"])
    body = {"session": session_key("codex", "gone-for-good"), "message": 7, "remove_labels": ["salt"]}
    assert app.post("/annotations", body).status == 200
    assert Annotations().all() == []
    assert app.post("/annotations", body).status == 404


def test_the_form_has_what_is_stored(app: Shown) -> None:
    change(app, message=2, add_labels=["salt"], note="look")
    change(app, add_labels=["sea"])
    form = app.part(f"/annotations/form?session={KEY}&message=2")
    boxes = {
        box.get("value"): box.get("checked") is not None for box in named(form, "input") if box.get("name") == "label"
    }
    assert boxes == {"salt": True, "sea": False}
    assert words(named(form, "textarea")) == "look" and "Message 2" in words(form)
    joined = "a family \U0001f469\u200d\U0001f4bb and a zero\u200bwidth space <b>"
    change(app, note=joined)
    (area,) = named(app.part(f"/annotations/form?session={KEY}"), "textarea")
    assert area.text == joined, "the form would store what it shows"
    assert app.get(f"/annotations/form?session={KEY}&message=99999").status == 404
    assert app.get("/annotations/form?session=nothing").status == 404


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ({"session": "nothing"}, 404, "Nothing in the catalog"),
        ({"message": 99999, "starred": True}, 404, "Nothing in the catalog"),
        ({"add_labels": ["a\x00b"]}, 400, "control or invisible"),
        ({"add_labels": ["x" * 61]}, 400, "at most 60"),
        ({"note": "x" * 10_001}, 400, "at most 10,000"),
        ({"starred": "yes"}, 400, "not what this address expects"),
        ({"colour": "red"}, 400, "not what this address expects"),
    ],
)
def test_a_change_that_is_not_allowed_is_refused(app: Shown, body: dict[str, Any], status: int, reason: str) -> None:
    assert reason in change(app, status, **body)["error"]
    assert Annotations().all() == []


def test_an_export_is_imported(app: Shown, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    change(app, starred=True, add_labels=["sea"], note="mine")
    answer = app.get("/annotations.json")
    assert answer.headers["content-disposition"].startswith("attachment")
    exported = json.loads(answer.body)
    monkeypatch.setenv("CLEW_DATA_DIR", str(tmp_path / "other"))
    for counts in ({"added": 1, "changed": 0, "unchanged": 0}, {"added": 0, "changed": 0, "unchanged": 1}):
        assert json.loads(app.post("/annotations/import", exported).body) == counts
    assert Annotations().get(TARGET).note == "mine"
    odd_files: list[Any] = [
        {"clew_annotations": 9, "annotations": []},
        {"annotations": []},
        [1],
        {**exported, "annotations": [{}]},
    ]
    for odd in odd_files:
        assert app.post("/annotations/import", odd).status == 400
    bad = {"clew_annotations": 1, "annotations": [{"agent": "codex", "session": "", "starred": True}]}
    assert "an id has" in json.loads(app.post("/annotations/import", bad).body)["error"]


@pytest.mark.parametrize(("value", "is_on"), [("0", False), ("no", False), ("1", True)])
def test_starred_means_the_same_on_every_page(app: Shown, value: str, is_on: bool) -> None:
    change(app, starred=True)
    change(app, message=2, note="without a star")
    assert ("without a star" in words(app.page(f"/annotations?starred={value}"))) is not is_on
    (box,) = [box for box in named(app.page(f"/sessions?starred={value}"), "input") if box.get("name") == "starred"]
    assert (box.get("checked") is not None) is is_on
    facets = links(app.page(f"/search?q=midnight&starred={value}"))
    assert ("/search?q=midnight" if is_on else "/search?q=midnight&starred=1") in facets


def test_a_masked_label_is_still_searched_by_after_the_next_query(app: Shown) -> None:
    label = f"k {SECRET}"
    change(app, add_labels=[label])
    page = app.page(f"/search?q=midnight&redact=secrets&label={quote(label)}")
    (kept,) = [field.get("value") or "" for field in named(page, "input") if field.get("name") == "label"]
    assert SECRET not in kept
    found = app.page(f"/search?q=midnight&redact=secrets&label={quote(kept)}")
    assert PAGE in [place.partition("?")[0].partition("#")[0] for place in links(found)]


def test_a_list_shows_the_star_and_labels_of_messages(app: Shown) -> None:
    change(app, message=2, starred=True, add_labels=["salt"])
    found = app.page("/sessions?starred=1")
    assert named(found, "span", "star") and words(named(found, "a", "label")) == "salt"


def test_words_that_are_too_long_are_refused_as_json(app: Shown) -> None:
    answer = app.get(f"{PAGE}/hits?q={'x' * 3000}")
    assert answer.status == 400 and "too long" in json.loads(answer.body)["problem"]


def test_an_export_with_something_masked_is_not_imported(app: Shown) -> None:
    change(app, add_labels=["sea"])
    assert "masked" not in json.loads(app.get("/annotations.json?redact=secrets").body)
    change(app, add_labels=[f"k {SECRET}"])
    exported = json.loads(app.get("/annotations.json?redact=secrets").body)
    assert exported["masked"] == "secrets"
    answer = app.post("/annotations/import", exported)
    assert answer.status == 400 and "masked" in json.loads(answer.body)["error"]
    assert list(Annotations().labels()) == [f"k {SECRET}", "sea"]
    assert "Export, masked: secrets" in words(app.page("/annotations?redact=secrets"))
    assert "Export, masked" not in words(app.page("/annotations"))


def test_a_damaged_file_hides_no_session(app: Shown) -> None:
    data_dir().mkdir(parents=True, exist_ok=True)
    (data_dir() / "annotations.db").write_bytes(b"not a database" * 100)
    for path in ("/", "/sessions", PAGE):
        app.page(path)
    assert "cannot be read" in words(summary(app))
    for path in ("/annotations", "/sessions?starred=1"):
        answer = app.get(path)
        assert answer.status == 503 and b"stars, labels and notes cannot be read" in answer.body
        assert str(data_dir()).encode() not in answer.body
    assert app.post("/annotations", {"session": KEY, "starred": True}).status == 503


def test_a_message_that_the_catalog_does_not_have_yet_is_marked(tmp_path: Path) -> None:
    from tests.catalog.worlds import append, claude_lines, spelled, write_claude

    session = "0a0a0a0a-1111-4111-8111-111111111111"
    path = write_claude(tmp_path / "home", session, 4)
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        append(path, spelled(claude_lines(session, 4, 2)))
        answer = app.post(
            "/annotations", {"session": session_key("claude-code", session), "message": 6, "starred": True}
        )
        assert answer.status == 200
    (found,) = Annotations().all()
    assert found.message == 6 and found.message_id


@pytest.mark.parametrize("text", HOSTILE)
def test_H01_labels_and_notes_are_shown_as_text(app: Shown, text: str) -> None:
    """Whatever a file with annotations holds: labels of an import are checked, but the file may be of anyone."""
    annotations = Annotations()
    annotations.change(TARGET, starred=True, note=text.encode("utf-8", "replace").decode().translate(CONTROLS))
    annotations.change(TARGET._replace(message=1), starred=True)
    _write_labels(annotations, text.encode("utf-8", "replace").decode())
    for path in ("/", "/sessions", "/annotations", PAGE, f"/sessions?label={quote(text, safe='')}"):
        app.page(path, 200)
    for path in (
        f"{PAGE}/annotations",
        f"/annotations/form?session={KEY}",
        f"/annotations/form?session={KEY}&message=1",
    ):
        assert b"<script>alert" not in app.get(path, X_Clew="1").body


CONTROLS = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)))


def _write_labels(annotations: Annotations, text: str) -> None:
    import sqlite3

    db = sqlite3.connect(annotations.path)
    db.execute("UPDATE annotation SET labels = ?", (json.dumps([text]),))
    db.commit()
    db.close()


def test_secrets_in_labels_and_notes_are_masked(tmp_path: Path) -> None:
    write_home(tmp_path / "home")
    target = Target("claude-code", SESSION)
    annotations = Annotations()
    annotations.change(target, starred=True, add_labels=[f"k {SECRET}"], note=f"token {SECRET}")
    annotations.change(target._replace(message=1), add_labels=["plain"], note=f"again {SECRET}")
    annotations.change(Target("codex", SECRET), note="id")
    key = session_key("claude-code", SESSION)
    page = f"/session/claude-code/{SESSION}"
    with shown(tmp_path / "home", tmp_path / "catalog", "secrets") as app:
        forms = (f"/annotations/form?session={key}", f"/annotations/form?session={key}&message=1")
        for path in ("/", "/sessions", "/annotations", "/annotations.json", page, f"{page}/annotations", *forms):
            body = app.get(path).body.decode()
            assert SECRET not in body, path
        (place,) = {place for place in links(app.page(page)) if place.startswith("/sessions?label=~")}
        assert page in links(app.page(place)), "a masked label can be followed"
        form = app.part(forms[0])
        (area,) = named(form, "textarea")
        assert area.get("readonly") is not None
        (masked,) = [box.get("value", "") for box in named(form, "input") if (box.get("value") or "").startswith("~")]
        assert app.post("/annotations", {"session": key, "remove_labels": [masked]}).status == 200
        assert annotations.get(target).labels == ()


def test_an_archived_session_keeps_its_marks(tmp_path: Path) -> None:
    from clew.catalog.sync import sync
    from clew.host import Host
    from tests.catalog.worlds import write_claude

    session = "0a0a0a0a-1111-4111-8111-111111111111"
    path = write_claude(tmp_path / "home", session, 6)
    page = f"/session/claude-code/{session}"
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        body = {"session": session_key("claude-code", session), "message": 3, "starred": True}
        assert app.post("/annotations", body).status == 200
        shutil.rmtree(path.parent)
        sync([Host.at(tmp_path / "home")], tmp_path / "catalog")
        assert "#3 ★" in words(summary(app, page))
        assert app.post("/annotations", {**body, "add_labels": ["sea"]}).status == 200
        assert len(Annotations().all()) == 1


def test_the_list_holds_some_messages_of_a_session_and_says_how_many_are_left(
    app: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.web.pages.annotated.MAX_MESSAGES_PER_SESSION", 2)
    for message in (1, 2, 3):
        change(app, message=message, starred=True)
    page = app.page("/annotations")
    (listed,) = named(page, "ol", "marked-messages")
    assert [words(one) for one in named(listed, "a", "which")] == ["#1", "#2"]
    assert "… and 1 more; the session lists all." in words(page)
    assert len(named(summary(app), "a", "which")) == 3
