"""What the buttons of a session fetch and post."""

from __future__ import annotations

import errno
import os
import re
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

import pytest

from clew.catalog.sync import sync
from clew.convert.conversion import NothingToConvert
from clew.errors import WouldLose
from clew.host import Host
from clew.web import user_settings
from clew.web.context import PAGE_THREADS, AppContext
from clew.web.download import content_disposition
from clew.web.pages import export
from clew.web.routes import EXPORTS_AT_ONCE
from tests.cli.running import clew
from tests.counting.homes import claude, prompt, reply
from tests.demo_home import write_small_demo
from tests.redact.planted import Planter
from tests.web.shown import Shown, links, named, shown, shown_context, words

SESSIONS = (
    "claude-code/71960fc3-4cec-4060-adfc-a6068f5d859b",
    "claude-code/f005c7db-1dcc-4692-bc16-77f2521cfb4b",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("buttons") / "home"
    write_small_demo(folder)
    return folder


@pytest.fixture(scope="module")
def app(home: Path) -> Iterator[Shown]:
    with shown(home, home.parent / "catalog") as running:
        yield running


@pytest.mark.parametrize("session", SESSIONS)
def test_copied_messages_are_those_of_the_markdown_export(home: Path, app: Shown, session: str) -> None:
    reference = session.replace("/", ":")
    exported = clew("--home", home, "export", reference, "--format", "markdown", "--redact", "none").out
    page = app.get(f"/session/{session}").body.decode()
    numbers = [int(number) for number in re.findall(r'<a class="n" href="#m(\d+)"', page)]
    copied = [app.get(f"/session/{session}/message/{number}.md") for number in numbers]
    assert len(copied) > 3 and {answer.headers["content-type"] for answer in copied} == {"text/markdown; charset=utf-8"}
    end = 0
    for answer in copied:
        end = exported.index(answer.body.decode(), end) + len(answer.body.decode())
    assert exported[end:].strip() == ""


def test_a_message_that_does_not_exist_is_not_copied(app: Shown) -> None:
    for number in ("0", "999999"):
        assert app.get(f"/session/{SESSIONS[0]}/message/{number}.md").status == 404


FORMATS = {"html": ".html", "markdown": ".md", "json": ".json"}
MEAN = f"/session/{SESSIONS[0]}"


def without_time(text: bytes) -> bytes:
    """An export without the moment it was made."""
    return re.sub(rb'"export_timestamp": ?"[^"]*"', b"", text)


@pytest.mark.parametrize("profile", ["secrets", "none"])
@pytest.mark.parametrize("form", FORMATS)
def test_an_export_is_that_of_the_command_line(home: Path, app: Shown, form: str, profile: str) -> None:
    reference = SESSIONS[0].replace("/", ":")
    exported = clew("--home", home, "export", reference, "--format", form, "--redact", profile).raw
    answer = app.get(f"{MEAN}/export/{form}?redact={profile}")
    assert without_time(answer.body) == without_time(exported)
    assert int(answer.headers["content-length"]) == len(answer.body)
    assert answer.headers["content-disposition"].startswith("attachment; ")
    name = unquote(answer.headers["content-disposition"])
    assert name.endswith(("(NOT masked)" if profile == "none" else "(masked)") + FORMATS[form])
    if form == "html":
        top = answer.body.decode().partition("</header>")[0]
        assert ("<dt>Masked</dt><dd>secrets</dd>" in top) == (profile == "secrets")


def test_the_menu_states_what_an_export_masks(home: Path, app: Shown) -> None:
    (menu,) = [one for one in named(app.page(MEAN), "details") if one.get("id") == "actions"]
    assert [words(one) for one in named(menu, "span")] == ["Export, masked: secrets", "Export, not masked"]
    assert len([link for link in links(menu) if link.endswith("?redact=none")]) == 3
    with shown(home, home.parent / "masked-catalog", "all") as masked:
        (menu,) = [one for one in named(masked.page(MEAN), "details") if one.get("id") == "actions"]
        assert [link for link in links(menu) if "/export/" in link] == [
            f"{MEAN}/export/{form}?redact=all" for form in FORMATS
        ]
        assert not [link for link in links(menu) if link.endswith("/continue")]
        assert "while secrets are hidden" in words(menu)
        refused = masked.get(f"{MEAN}/export/html?redact=none")
        assert refused.status == 400 and b"exports nothing unmasked" in refused.body


def test_an_export_is_masked_unless_something_else_is_chosen(tmp_path: Path) -> None:
    secret = Planter("export").github()
    claude(tmp_path / "home", prompt(f"Use {secret} here"), reply("m1", 10, 20))
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        (address,) = {link for link in links(app.page("/sessions")) if link.startswith("/session/")}
        for form in FORMATS:
            for query in ("", "?redact=secrets", "?redact=unknown", "?redact="):
                answer = app.get(f"{address}/export/{form}{query}")
                assert secret.encode() not in answer.body and b"REDACTED" in answer.body
                assert secret not in unquote(answer.headers["content-disposition"])
            assert secret.encode() in app.get(f"{address}/export/{form}?redact=none").body
        assert secret in app.get(f"{address}/message/1.md").body.decode()
        assert secret not in app.get(f"{address}/message/1.md?redact=secrets").body.decode()


@pytest.mark.parametrize(
    "title",
    [
        "../../etc/passwd",
        'a"; filename=evil.exe; x="',
        "line\r\nSet-Cookie: a=b",
        "\u202etxt.exe\x00",
        "…/日本語 \\ 🌊",
        "." * 400,
        "",
        "\ud800",
        "%2e%2e%2f",
    ],
)
def test_a_hostile_title_names_a_harmless_file(title: str) -> None:
    header = content_disposition(title, ".html")
    match = re.fullmatch(r"attachment; filename=\"([A-Za-z0-9 ._()-]+)\"; filename\*=UTF-8''([\w.%~-]+)", header)
    assert match is not None and header.isascii() and header.isprintable(), header
    for name in (match[1], unquote(match[2])):
        assert name.endswith(".html") and not name.startswith(".") and len(name.encode()) < 255
        assert not re.search(r'[/\\\x00-\x1f"]', name)


def test_only_sessions_and_formats_that_exist_are_exported(app: Shown) -> None:
    for path in (
        f"{MEAN}/export/exe",
        f"{MEAN}/export/..%2f..%2fetc%2fpasswd",
        f"{MEAN}/export/%00",
        "/session/claude-code/..%2f..%2fetc%2fpasswd/export/html",
        "/session/claude-code/%2e%2e/resume",
        "/session/codex/71960fc3-4cec-4060-adfc-a6068f5d859b/continue",
    ):
        assert app.get(path).status == 404, path


def test_the_resume_command_is_that_of_the_command_line(home: Path, app: Shown) -> None:
    for session in SESSIONS:
        printed = clew("--home", home, "resume", session.replace("/", ":"), "--dry-run").out
        assert app.get(f"/session/{session}/resume").body.decode() == printed.rstrip("\n")


def test_a_session_that_its_agent_does_not_find_is_converted_by_the_copied_command(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    (tmp_path / "target").mkdir()
    context = context_at(tmp_path / "home", tmp_path / "catalog", tmp_path / "target")
    with shown_context(context) as app:
        copied = app.get(f"{MEAN}/resume").body.decode()
    (path,) = (tmp_path / "home").rglob(f"{SESSIONS[0].partition('/')[2]}.jsonl")
    printed = clew("resume", path, "--dry-run", "--home", tmp_path / "target").out
    assert copied == printed.rstrip("\n") and copied.startswith("clew convert ") and copied.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (WouldLose("x.jsonl exists already"), "x.jsonl exists already"),
        (NothingToConvert("the session has no messages to convert"), "no messages to convert"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "the files cannot be written: No space left on device"),
    ],
)
def test_what_prevents_a_conversion_is_said_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, text: str
) -> None:
    def fail(*_args: object, **_named: object) -> None:
        raise error

    write_small_demo(tmp_path / "home")
    (tmp_path / "target").mkdir()
    with shown_context(context_at(tmp_path / "home", tmp_path / "catalog", tmp_path / "target")) as app:
        monkeypatch.setattr("clew.convert.target_files.Prepared.rehearse", fail)
        monkeypatch.setattr("clew.convert.target_files.Prepared.write", fail)
        assert text in words(app.page(f"{MEAN}/resume", 400))
        assert text in words(app.page(f"{MEAN}/continue?to=codex"))
        refused = app.post(f"{MEAN}/continue", {"to": "codex", "allow_loss": True})
        assert refused.status == 400 and text in refused.body.decode()


def context_at(home: Path, folder: Path, target: Path | None = None) -> AppContext:
    """The app over a home with a clock that stands still, so that what it writes can be compared."""
    sync([host_at(home)], folder)
    return AppContext([host_at(home)], folder, target_host=host_at(target) if target is not None else None)


def host_at(home: Path) -> Host:
    return Host(home, now=lambda: datetime(2026, 11, 18, 12, tzinfo=UTC))


def files_below(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


@pytest.mark.parametrize("target", ["codex", "gemini", "sage-agent"])
def test_a_session_written_for_another_agent_is_that_of_the_command_line(
    tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    write_small_demo(home)
    reference = SESSIONS[0].replace("/", ":")
    with shown_context(context_at(home, tmp_path / "catalog")) as app:
        before = files_below(home)
        page = app.page(f"{MEAN}/continue?to={target}")
        assert files_below(home) == before
        (button,) = [one for one in named(page, "button") if one.get("id") == "write"]
        refused = app.post(f"{MEAN}/continue", {"to": target})
        if button.get("data-loss"):
            assert refused.status == 400 and files_below(home) == before
            assert app.post(f"{MEAN}/continue", {"to": target, "allow_loss": True}).status == 200
        written = files_below(home)
        again = app.post(f"{MEAN}/continue", {"to": target, "allow_loss": True})
        assert again.status == 200 and files_below(home) == written
        assert "written for" in words(app.page(f"{MEAN}/continue?to={target}"))
    added = {name: content for name, content in written.items() if before.get(name) != content}
    assert added and all(name in written for name in before)
    shutil.rmtree(home)
    write_small_demo(home)
    monkeypatch.setattr("clew.cli.command_convert.target_host", lambda *_: host_at(home))
    done = clew("--home", home, "convert", reference, "--to", target, "--allow-loss")
    assert done.code == 0, done.err
    assert {name: content for name, content in files_below(home).items() if before.get(name) != content} == added


PREDICT = "/home/ada/src/tidepool/tidepool/predict.py"


def editor_addresses(app: Shown, path: str) -> list[str]:
    found = [link.get("href", "") for link in named(app.page(path), "a")]
    return [address for address in found if "://" in address and not address.startswith("http")]


def test_files_open_in_the_editor_of_the_settings(app: Shown) -> None:
    places = (MEAN, f"{MEAN}/panel/files", f"/files/history?path={PREDICT}")
    assert [editor_addresses(app, place) for place in places] == [[], [], []]
    user_settings.save({"editor": "vscode"})
    for place in places:
        assert f"vscode://file{PREDICT}" in editor_addresses(app, place), place
    assert "Open in VS Code" in words(app.page(places[2]))
    user_settings.save({"editor": "idea"})
    assert f"idea://open?file={PREDICT}" in editor_addresses(app, MEAN)
    assert editor_addresses(app, f"{MEAN}?redact=paths") == []
    assert editor_addresses(app, f"{MEAN}/panel/files?redact=paths") == []


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ('/srv/a b/"><script>alert(1)</script>.py', "/srv/a%20b/%22%3E%3Cscript%3Ealert%281%29%3C/script%3E.py"),
        ("/srv/%2e%2e/x.py", "/srv/%252e%252e/x.py"),
        ("/srv/../../etc/passwd", None),
        ("//server/share/x.py", "/server/share/x.py"),
        ("javascript:alert(1)//x", "/home/dev/app/javascript%3Aalert%281%29/x"),
        ("notes/tide.md", "/home/dev/app/notes/tide.md"),
        ("../outside.md", None),
        ("/srv/line\nbreak.py", None),
    ],
)
def test_a_hostile_path_leads_nowhere_else(tmp_path: Path, path: str, expected: str | None) -> None:
    answer = reply("m1", 10, 20)
    answer["message"]["content"] += [
        {"type": "tool_use", "id": "toolu_01", "name": "Write", "input": {"file_path": path, "content": "x = 1\n"}},
    ]
    claude(tmp_path / "home", prompt("Write it"), answer)
    user_settings.save({"editor": "vscode"})
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        (address,) = {link for link in links(app.page("/sessions")) if link.startswith("/session/")}
        found = set(editor_addresses(app, address)) | set(editor_addresses(app, f"{address}/panel/files"))
        assert found - {"vscode://file/home/dev/app"} == ({f"vscode://file{expected}"} if expected else set())


def test_a_session_is_continued_with_secrets_shown_where_they_are_hidden_by_default(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    user_settings.save({"masking": "secrets"})
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        (menu,) = [one for one in named(app.page(MEAN), "details") if one.get("id") == "actions"]
        assert f"{MEAN}/continue?redact=none" in links(menu)
        assert f"{MEAN}/continue?redact=none" in links(app.page(f"{MEAN}/continue"))
        assert f"{MEAN}/continue?redact=none&to=codex" in links(app.page(f"{MEAN}/continue?redact=none"))
        body = {"to": "codex", "allow_loss": True}
        assert app.post(f"{MEAN}/continue?to=codex", body).status == 400
        assert app.post(f"{MEAN}/continue?redact=none&to=codex", body).status == 200


def test_nothing_is_written_while_secrets_are_hidden(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    before = files_below(tmp_path / "home")
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        for path in (f"{MEAN}/continue?redact=secrets", f"{MEAN}/continue?redact=paths"):
            assert app.post(path, {"to": "codex", "allow_loss": True}).status == 400
            assert "Secrets are hidden" in words(app.page(path)) and "to=codex" not in app.get(path).body.decode()
    with shown(tmp_path / "home", tmp_path / "catalog", "secrets") as app:
        refused = app.post(f"{MEAN}/continue?redact=none", {"to": "codex", "allow_loss": True})
        assert refused.status == 400 and b"Secrets are hidden" in refused.body
    assert files_below(tmp_path / "home") == before


def test_only_the_app_itself_writes_and_only_for_known_agents(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    before = files_below(tmp_path / "home")
    body = {"to": "codex", "allow_loss": True}
    with shown(tmp_path / "home", tmp_path / "catalog") as app:
        assert app.post(f"{MEAN}/continue", body, Content_Type="text/plain").status == 403
        assert app.post(f"{MEAN}/continue", body, Origin="http://evil.example").status == 403
        assert app.post(f"{MEAN}/continue", body, Sec_Fetch_Site="cross-site").status == 403
        for wrong in ({}, {"to": 1}, {**body, "home": "/etc"}, ["codex"]):
            assert app.post(f"{MEAN}/continue", wrong).status == 400, wrong
        for agent in ("claude-code", "cod", "unknown", "../codex"):
            assert app.post(f"{MEAN}/continue", {"to": agent, "allow_loss": True}).status == 404, agent
        assert app.post("/session/claude-code/..%2f..%2fetc/continue", body).status in (404, 405)
    assert files_below(tmp_path / "home") == before


def test_what_is_in_the_way_is_said_and_not_replaced(tmp_path: Path) -> None:
    write_small_demo(tmp_path / "home")
    with shown_context(context_at(tmp_path / "home", tmp_path / "catalog")) as app:
        page = app.page(f"{MEAN}/continue?to=codex")
        target = Path(words(named(named(page, "ul", "written")[0], "code")[:1]))
        target.mkdir(parents=True)
        before = files_below(tmp_path / "home")
        answer = app.post(f"{MEAN}/continue", {"to": "codex", "allow_loss": True})
        assert answer.status == 400 and b"exists" in answer.body
        page = app.page(f"{MEAN}/continue?to=codex")
        assert "cannot be written" in words(page) and not [
            one for one in named(page, "button") if one.get("id") == "write"
        ]
        assert files_below(tmp_path / "home") == before


def test_a_session_without_files_is_neither_exported_nor_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    write_small_demo(home)
    context = context_at(home, tmp_path / "catalog")
    with shown_context(context) as app:
        monkeypatch.setattr(context, "engine", "postgresql://box/clew")
        check_that_there_are_no_files(app, "not on this machine")
        monkeypatch.setattr(context, "engine", "")
        (path,) = home.rglob(f"{SESSIONS[0].partition('/')[2]}.jsonl")
        path.unlink()
        sync([host_at(home)], tmp_path / "catalog")
        check_that_there_are_no_files(app, "is missing")
        assert app.get(f"{MEAN}/message/1.md").status == 200


def check_that_there_are_no_files(app: Shown, reason: str) -> None:
    (menu,) = [one for one in named(app.page(MEAN), "details") if one.get("id") == "actions"]
    assert reason in words(menu) and "neither exported nor continued" in words(menu)
    assert not [link for link in links(menu) if "/export/" in link or link.endswith("/continue")]
    assert f"{MEAN}/print" in links(menu)
    assert app.get(f"{MEAN}/export/html").status == 400
    assert app.get(f"{MEAN}/resume").status == 400
    assert reason in words(app.page(f"{MEAN}/continue?to=codex"))
    assert app.post(f"{MEAN}/continue", {"to": "codex"}).status == 400


def test_pages_are_served_while_many_exports_are_written(app: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    running, most, may_end, lock = 0, 0, threading.Event(), threading.Lock()
    are_all_running = threading.Event()

    def write_slowly(*_args: object) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if running == EXPORTS_AT_ONCE:
                are_all_running.set()
        may_end.wait(30)
        with lock:
            running -= 1

    monkeypatch.setitem(export.FORMATS, "json", export.FORMATS["json"]._replace(write=write_slowly))
    app.get("/sources")
    with ThreadPoolExecutor(PAGE_THREADS + 2) as pool:
        exports = [pool.submit(app.get, f"{MEAN}/export/json") for _ in range(PAGE_THREADS + 1)]
        try:
            assert are_all_running.wait(20)
            assert pool.submit(app.get, "/sources").result(20).status == 200
        finally:
            may_end.set()
        assert [each.result().status for each in exports] == [200] * (PAGE_THREADS + 1)
    assert most == EXPORTS_AT_ONCE


def copied_by(app: Shown, path: str) -> dict[str, str]:
    """What the buttons of the menu copy, by what they say."""
    return {words(one): one.get("data-copy", "") for one in named(app.page(path), "button") if one.get("data-copy")}


def test_paths_of_the_folder_and_of_the_source_are_copied_and_the_folder_is_opened(home: Path, app: Shown) -> None:
    (source,) = home.rglob(f"{SESSIONS[0].partition('/')[2]}.jsonl")
    found = copied_by(app, MEAN)
    assert found["Copy folder path"] == "/home/ada/src/tidepool" and found["Copy source path"] == str(source)
    assert "vscode://file/home/ada/src/tidepool" not in editor_addresses(app, MEAN)
    user_settings.save({"editor": "vscode"})
    assert "vscode://file/home/ada/src/tidepool" in editor_addresses(app, MEAN)
    assert "Copy folder path" not in copied_by(app, f"{MEAN}?redact=paths")
    assert "Copy source path" not in copied_by(app, f"{MEAN}?redact=paths")
    assert editor_addresses(app, f"{MEAN}?redact=paths") == []
