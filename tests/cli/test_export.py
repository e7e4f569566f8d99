"""Sessions out to documents, and documents back to the same bytes."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from pathlib import Path

import pytest
import zstandard

from clew.agents import registry
from clew.export.markdown import write_markdown
from clew.export.reading import read_documents
from clew.host import Host
from clew.io.compress import open_source
from clew.library import Library, StoredSession
from clew.model.load import load_document
from clew.render.branching import Forks
from tests.cli.running import BELL, FORKED, LATEST, clew, run, state
from tests.unit.samples import SESSION, claude_line


def sources(home: Path) -> list[StoredSession]:
    return list(Library(Host.at(home)).sources())


def files_of(session: StoredSession) -> dict[str, bytes]:
    """The native files of a session, by name."""
    names = [session.path.name, *session.source.parts, *session.source.sides]
    return {name: (session.path.parent / name).read_bytes() for name in names}


# Out


NOT_MASKED = "not masked; use --redact secrets to mask keys and passwords\n"


@pytest.mark.parametrize(
    ("words", "is_noted"),
    [
        (("-o", "x.json"), True),
        (("-o", "x.ndjson"), True),
        (("-o", "folder", "--layout", "date"), True),
        (("-o", "x.json", "--redact", "none"), False),
        (("-o", "x.json", "--redact", "secrets"), False),
        (("-o", "x.md"), False),
        (("-o", "-"), False),
        ((), False),
    ],
)
def test_a_file_that_is_not_masked_is_named(
    demo: Path, tmp_path: Path, words: tuple[str, ...], is_noted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = clew("--home", demo, "export", LATEST, *words)
    assert ran.code == 0 and (NOT_MASKED in ran.err) == is_noted
    assert not (tmp_path / "-").exists()


@pytest.mark.seed("S2-6")
def test_a_json_file_holds_one_session(demo: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.json"
    ran = clew("--home", demo, "export", LATEST, "-o", target)
    assert (ran.code, ran.out, ran.err) == (0, "", NOT_MASKED)
    document = load_document(target.read_bytes())
    assert (document.session.id, document.agent, document.schema_version) == (LATEST, "claude-code", "1.2")
    assert [message.index for message in document.messages] == list(range(1, 20))
    printed = clew("--home", demo, "export", LATEST).json
    stored = json.loads(target.read_bytes())
    assert {**printed, "export_timestamp": ""} == {**stored, "export_timestamp": ""}


@pytest.mark.seed("S2-6")
def test_an_ndjson_file_holds_one_session_a_line(demo: Path, tmp_path: Path) -> None:
    target = tmp_path / "all.ndjson"
    assert clew("--home", demo, "export", "--to", "ndjson", "-o", target).code == 0
    lines = target.read_bytes().splitlines()
    assert target.read_bytes().endswith(b"\n")
    assert len(lines) == 28
    assert sorted(load_document(line).session.id for line in lines) == sorted(s.id for s in sources(demo))
    single = json.loads(next(line for line in lines if FORKED.encode() in line[:300]))
    whole = clew("--home", demo, "export", FORKED).json
    assert {**single, "export_timestamp": ""} == {**whole, "export_timestamp": ""}


def test_markdown_to_stdout_and_to_a_file(demo: Path, tmp_path: Path) -> None:
    printed = clew("--home", demo, "export", FORKED, "--to", "markdown")
    assert printed.code == 0
    assert "When is the first new moon" in printed.out
    target = tmp_path / "x.md"
    assert clew("--home", demo, "export", FORKED, "--to", "markdown", "-o", target).code == 0
    assert target.read_bytes() == printed.raw
    short = clew("--home", demo, "export", FORKED, "--to", "markdown", "--detail", "prompts")
    assert len(short.raw) < len(printed.raw)


@pytest.mark.slow
@pytest.mark.seed("S2-4")
def test_markdown_of_the_document_is_that_of_the_source(demo: Path, tmp_path: Path) -> None:
    for session in sources(demo):
        target = tmp_path / "x.json"
        assert clew("--home", demo, "export", session.path, "-o", target, "--force").code == 0
        with target.open("rb") as stream, (tmp_path / "x.md").open("wb") as out:
            (document,) = read_documents(stream)
            forks = Forks.of_graph(document.graph)
            write_markdown(document.header.session, document.messages(), out, forks=forks)
        expected = clew("--home", demo, "export", session.path, "--to", "markdown", "--redact", "none").raw
        assert (tmp_path / "x.md").read_bytes() == expected


def test_several_sessions_need_a_place(demo: Path) -> None:
    for form in ("json", "markdown"):
        ran = clew("--home", demo, "export", "--to", form)
        assert (ran.code, ran.out) == (2, "")
        assert "give a folder with -o" in ran.err


def test_several_sessions_into_a_folder(demo: Path, tmp_path: Path) -> None:
    ran = clew("--home", demo, "export", "-o", tmp_path / "out")
    assert (ran.code, ran.out) == (0, "")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == sorted(f"{session.agent.id}-{session.id}.json" for session in sources(demo))
    # One session goes into a folder that is there, too.
    assert clew("--home", demo, "export", FORKED, "--to", "markdown", "-o", tmp_path / "out").code == 0
    assert (tmp_path / "out" / f"claude-code-{FORKED}.md").is_file()


@pytest.mark.slow
def test_sessions_of_one_name_do_not_replace_each_other(demo: Path, tmp_path: Path) -> None:
    copy = tmp_path / "home" / ".claude" / "projects" / "-p"
    copy.mkdir(parents=True)
    (copy / f"{FORKED}.jsonl").write_text(json.dumps(claude_line("user", "u1", None, sessionId=FORKED)) + "\n")
    assert clew("--home", demo, "--home", tmp_path / "home", "export", "-o", tmp_path / "out").code == 0
    assert len(list((tmp_path / "out").glob(f"claude-code-{FORKED}*.json"))) == 2
    assert (
        clew("--home", demo, "--home", tmp_path / "home", "export", "--layout", "project", "-o", tmp_path / "out").code
        == 0
    )
    assert len(list((tmp_path / "out" / "sessions").rglob(f"*{FORKED}*.jsonl"))) == 2


@pytest.mark.parametrize("name", ["x/../../../evil", "../../evil", "/evil", "..\\evil", "\x1b[31mevil"])
@pytest.mark.parametrize("layout", [[], ["--layout", "date"], ["--layout", "project"]])
def test_R01_a_hostile_id_stays_in_the_folder(tmp_path: Path, name: str, layout: list[str]) -> None:
    folder = tmp_path / "a" / "home" / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    for at in range(2):
        line = claude_line("user", "u1", None, sessionId=f"{name}{at}", cwd=f"/home/ada/{name}")
        (folder / f"notes{at}.jsonl").write_text(json.dumps(line) + "\n")
    before = state(tmp_path)
    assert clew("--home", tmp_path / "a" / "home", "export", "-o", tmp_path / "a" / "b" / "out", *layout).code == 0
    new = [path for path in state(tmp_path) if path not in before]
    assert len(new) == 2
    for path in new:
        assert Path(path).resolve().is_relative_to(tmp_path / "a" / "b" / "out")
        assert "\x1b" not in path


# Compressed


@pytest.mark.seed("S2-52")
@pytest.mark.parametrize("form", ["json", "ndjson"])
@pytest.mark.parametrize(("option", "suffix"), [("--gz", ".gz"), ("--zst", ".zst"), (None, ".gz"), (None, ".zst")])
def test_compressed_documents_are_written_and_read(
    demo: Path, tmp_path: Path, form: str, option: str | None, suffix: str
) -> None:
    target = tmp_path / f"x.{form}{suffix}"
    options = [option] if option else []
    assert clew("--home", demo, "export", FORKED, "--to", form, "-o", target, *options).code == 0
    packed = target.read_bytes()
    assert packed.startswith(b"\x1f\x8b" if suffix == ".gz" else b"\x28\xb5\x2f\xfd")
    with open_source(target) as stream:
        assert load_document(stream.read()).session.id == FORKED
    assert clew("import", target, "-o", tmp_path / "back").code == 0
    (native,) = (tmp_path / "back").rglob("*.jsonl")
    assert native.read_bytes() == next(demo.rglob(f"{FORKED}.jsonl")).read_bytes()


@pytest.mark.slow
@pytest.mark.seed("S2-52")
def test_compressed_documents_to_stdout(demo: Path) -> None:
    assert json.loads(gzip.decompress(clew("--home", demo, "export", FORKED, "--gz").raw))["agent"] == "claude-code"
    packed = run("--home", demo, "export", FORKED, "--zst").raw
    with zstandard.ZstdDecompressor().stream_reader(packed) as stream:
        assert json.loads(stream.read())["agent"] == "claude-code"


def test_a_folder_of_compressed_documents(demo: Path, tmp_path: Path) -> None:
    assert clew("--home", demo, "export", "--gz", "-o", tmp_path).code == 0
    names = [path.name for path in tmp_path.iterdir()]
    assert len(names) == len(sources(demo)) == 28
    assert all(name.endswith(".json.gz") for name in names)


# Filed


@pytest.mark.parametrize(
    ("layout", "pattern"),
    [
        pytest.param("date", r"sessions/\d{4}-\d\d-\d\d/session-.+\.jsonl", marks=pytest.mark.seed("S4-28")),
        pytest.param("project", r"sessions/[^/]+/\d{4}-\d\d-\d\d-.+\.jsonl", marks=pytest.mark.seed("S4-29")),
    ],
)
def test_filed_sessions_are_read_again(demo: Path, tmp_path: Path, layout: str, pattern: str) -> None:
    chosen = ["--agent", "claude-code"]
    assert clew("--home", demo, "export", *chosen, "--layout", layout, "-o", tmp_path).code == 0
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    for path in files:
        assert re.fullmatch(pattern, path.relative_to(tmp_path).as_posix())
    originals = {s.id: s for s in sources(demo) if s.agent.id == "claude-code"}
    found = {session.id: session for session in Library().find(f"{tmp_path}/")}
    assert found.keys() == originals.keys()
    assert len(found) == len(files)
    for name, session in found.items():
        original = originals[name]
        assert session.path.read_bytes() == original.path.read_bytes()
        assert session.header.is_agent_session == original.header.is_agent_session
        assert session.header.parent_session_id == original.header.parent_session_id
        day = (original.header.started_at or "")[:10]
        assert day in session.path.relative_to(tmp_path).as_posix()
        if layout == "project":
            assert session.path.parent.name == Path(original.header.workspace).name
    assert clew("verify", tmp_path).code == 0


def test_filing_needs_a_folder(demo: Path) -> None:
    assert clew("--home", demo, "export", FORKED, "--layout", "date").code == 2


# Back


@pytest.mark.slow
def test_every_session_of_the_demo_comes_back(demo: Path, tmp_path: Path) -> None:
    for number, session in enumerate(sources(demo)):
        document, target = tmp_path / f"{number}.json", tmp_path / f"{number}"
        assert clew("export", session.path, "-o", document).code == 0
        ran = clew("import", document, "-o", target, "--json")
        assert ran.code == 0
        (row,) = ran.json
        assert (row["session_id"], row["agent"]) == (session.id, session.agent.id)
        written = {Path(name).name: Path(name).read_bytes() for name in row["files"]}
        assert written == files_of(session)
        assert sorted(state(target)) == sorted(row["files"])
        (again,) = Library().find(row["files"][0])
        assert (again.agent.id, again.header.title) == (session.agent.id, session.header.title)


@pytest.mark.seed("S2-52")
def test_many_sessions_in_one_compressed_file_come_back(demo: Path, tmp_path: Path) -> None:
    document = tmp_path / "all.ndjson.gz"
    assert clew("--home", demo, "export", "--to", "ndjson", "-o", document).code == 0
    assert clew("import", document, "-o", tmp_path / "back").code == 0
    expected = {s.path.relative_to(demo): files_of(s) for s in sources(demo)}
    assert {s.path.relative_to(tmp_path / "back"): files_of(s) for s in sources(tmp_path / "back")} == expected


def test_a_session_to_stdout(demo: Path, tmp_path: Path) -> None:
    document = tmp_path / "x.json"
    clew("--home", demo, "export", FORKED, "-o", document)
    assert clew("import", document, "--stdout").raw == next(demo.rglob(f"{FORKED}.jsonl")).read_bytes()
    assert clew("import", document).code == 2


def test_import_does_not_overwrite(demo: Path, tmp_path: Path) -> None:
    document = tmp_path / "x.json"
    clew("--home", demo, "export", BELL, "-o", document)
    assert clew("import", document, "-o", tmp_path / "back").code == 0
    (log,) = (tmp_path / "back").rglob("messages.jsonl")
    log.write_bytes(b"mine\n")
    before = state(tmp_path / "back")
    ran = clew("import", document, "-o", tmp_path / "back")
    assert ran.code == 6
    assert f"{log} exists" in ran.err
    assert state(tmp_path / "back") == before
    assert clew("import", document, "-o", tmp_path / "back", "--force").code == 0
    assert log.read_bytes() == (demo / ".sage" / "sessions" / BELL / "messages.jsonl").read_bytes()


def document(**changes: object) -> dict[str, object]:
    """A small document that can be imported."""
    session = {"id": SESSION, "workspace": "/home/ada/p", "is_agent_session": False}
    message = {"index": 1, "role": "user", "content": [{"type": "text", "text": "hello"}]}
    whole: dict[str, object] = {
        "schema_version": "1.1",
        "export_timestamp": "2026-01-01T00:00:00Z",
        "agent": "claude-code",
        "session": session,
        "messages": [message],
    }
    return whole | changes


SESSION_ID = "5f0e7c1a-0d5b-4b6e-9d3a-6f1f0a2b3c4d"


def imported(tmp_path: Path, value: object) -> int:
    """The exit code of an import, which must leave nothing behind unless it is 0."""
    source = tmp_path / "in.json"
    source.write_text(value if isinstance(value, str) else json.dumps(value))
    before = state(tmp_path)
    ran = clew("import", source, "-o", tmp_path / "a" / "b" / "home")
    if ran.code:
        assert state(tmp_path) == before
        assert len(ran.err.splitlines()) == 1
    return ran.code


def test_a_document_made_by_hand_is_imported(tmp_path: Path) -> None:
    assert imported(tmp_path, document()) == 0
    (path,) = (tmp_path / "a").rglob("*.jsonl")
    assert path.name == f"{SESSION}.jsonl"
    said, end = map(json.loads, path.read_bytes().splitlines())
    assert said["message"] == {"role": "user", "content": "hello"}
    assert (end["type"], end["leafUuid"]) == ("last-prompt", said["uuid"])


@pytest.mark.parametrize("agent", registry.names())
@pytest.mark.parametrize("name", ["../x", "/x", "..", "a/../../x", "..\\x", "C:x", "x\0y"])
def test_R01_hostile_names_are_refused(tmp_path: Path, agent: str, name: str) -> None:
    session = {"id": "s", "workspace": "/p", "is_agent_session": False, "started_at": None, "ended_at": None}
    agent_session = {**session, "is_agent_session": True, "parent_session_id": name}
    main = {"path": "main.jsonl", "records": []}
    hostile = [document(agent=agent, session=session, native={"files": [main, {"path": name, "records": ["hi"]}]})]
    if agent != "sage-emacs" and name != "..":
        hostile.append(document(agent=agent, session={**session, "id": name}))
    if agent == "claude-code":
        hostile += [document(session=agent_session), document(session={**session, "workspace_encoded": name})]
    for value in hostile:
        assert imported(tmp_path, value) in (2, 4), value


@pytest.mark.parametrize("agent", registry.names())
@pytest.mark.parametrize(
    "names", [["memory/MEMORY.md"], ["other.jsonl"], [".dir-locals.el"], ["x.json", "x.json"], [""], ["a\nb"]]
)
def test_R01_files_that_no_such_session_has_are_refused(tmp_path: Path, agent: str, names: list[str]) -> None:
    session = {"id": SESSION_ID, "workspace": "/p", "is_agent_session": False, "started_at": None, "ended_at": None}
    files = [{"path": name, "records": ["hi"]} for name in ("main.jsonl", *names)]
    assert imported(tmp_path, document(agent=agent, session=session, native={"files": files})) in (2, 4)


def test_nothing_is_imported_where_a_folder_is_in_the_way(demo: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.json"
    assert clew("--home", demo, "export", "65e3", "-o", target).code == 0
    folder = tmp_path / "home" / ".sage" / "sessions" / "65e3e58a-4436-41d2-b07c-28cc2b6f97b8"
    (folder / "metadata.json").mkdir(parents=True)
    done = clew("import", target, "-o", tmp_path / "home", "--force")
    assert done.code == 6 and "it is a folder" in done.err
    assert [path.name for path in folder.iterdir()] == ["metadata.json"]


@pytest.mark.parametrize("version", ["2.0", "0.9", "3.1.4"])
def test_another_major_version_is_refused(tmp_path: Path, version: str) -> None:
    assert imported(tmp_path, document(schema_version=version)) == 4


@pytest.mark.parametrize("version", ["1.0", "1.0.0", "1.1", "1.9"])
def test_every_minor_version_is_read(tmp_path: Path, version: str) -> None:
    assert imported(tmp_path, document(schema_version=version)) == 0


@pytest.mark.parametrize(
    "value",
    [
        "",
        "{",
        "[]",
        "{}",
        "nonsense",
        document(schema_version=1),
        document(session=[]),
        document(session={}),
        document(session={"id": 7, "workspace": []}),
        document(extensions=[7]),
        document(messages=7),
        document(messages=[7]),
        document(messages=[{"index": 1}]),
        document(messages=[{"index": "1", "role": "user", "content": []}], records=[{"after": 0, "kind": "x"}]),
        document(messages=[{"index": 1, "role": "wizard", "content": []}]),
        document(messages=[{"index": 1, "role": "user", "content": [7]}]),
        document(native={"files": [{"path": "x.jsonl", "records": [["no base64"]]}]}),
        document(native={"files": [{"path": 7, "records": []}]}),
        document(native={"files": [{"records": []}]}),
    ],
)
def test_what_is_no_document_is_refused(tmp_path: Path, value: object) -> None:
    assert imported(tmp_path, value) == 4


def test_an_agent_that_is_not_installed(tmp_path: Path) -> None:
    assert imported(tmp_path, document(agent="nobody")) == 2


def test_json_and_another_format_contradict_each_other(demo: Path) -> None:
    ran = clew("--home", demo, "export", "f005", "--to", "ndjson", "--json")
    assert (ran.code, ran.out) == (2, "")
    assert "cannot be combined" in ran.err


def test_a_device_is_written_to_and_not_replaced(demo: Path) -> None:
    before = Path("/dev/null").stat().st_rdev
    assert clew("--home", demo, "export", "f005", "-o", "/dev/null").code == 0
    assert Path("/dev/null").stat().st_rdev == before
    assert not Path("/dev/null").is_file()


def test_a_message_can_only_be_shown(demo: Path) -> None:
    for command in ("export", "verify", "validate"):
        ran = clew("--home", demo, command, "f005#3")
        assert ran.code == 2
        assert "only `clew show`" in ran.err


def test_what_is_there_is_only_replaced_by_force(demo: Path, tmp_path: Path) -> None:
    target = tmp_path / "keep.json"
    target.write_text("precious")
    ran = clew("--home", demo, "export", "f005", "-o", target)
    assert (ran.code, ran.out) == (6, "")
    assert target.read_text() == "precious"
    link = tmp_path / "link.json"
    link.symlink_to(target)
    assert clew("--home", demo, "export", "f005", "-o", link, "--force").code == 0
    assert link.is_symlink()
    assert target.read_text().startswith('{"schema_version"')


def test_S03_nothing_is_written_where_an_agent_keeps_sessions(demo: Path) -> None:
    inside = demo / ".claude" / "projects" / "evil.json"
    ran = clew("--home", demo, "export", "f005", "-o", inside, "--force")
    assert (ran.code, ran.out) == (2, "")
    assert not inside.exists()


def test_an_empty_folder_means_no_session_and_not_all(demo: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ran = clew("--home", demo, "export", tmp_path / "empty", "--to", "ndjson")
    assert (ran.code, ran.out) == (1, "")


# The format from the name


@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
@pytest.mark.parametrize(("suffix", "form"), [(".html", "html"), (".md", "markdown"), (".ndjson", "ndjson")])
def test_the_name_of_the_file_says_the_format(demo: Path, tmp_path: Path, suffix: str, form: str, packed: str) -> None:
    named, told = tmp_path / f"x{suffix}{packed}", tmp_path / f"told{packed}"
    assert clew("--home", demo, "export", LATEST, "-o", named).code == 0
    assert clew("--home", demo, "export", LATEST, "--to", form, "-o", told).code == 0
    assert timeless(named) == timeless(told)


def timeless(path: Path) -> bytes:
    with open_source(path) as stream:
        return re.sub(rb'"export_timestamp":"[^"]*"', b"", stream.read())


def test_a_page_may_be_known_by_its_name_alone(demo: Path, tmp_path: Path) -> None:
    assert clew("--home", demo, "export", LATEST, "--carry", "-o", tmp_path / "x.html").code == 0
    (native,) = demo.rglob(f"{LATEST}.jsonl")
    for suffix in (".gz", ".zst"):
        page = tmp_path / f"y.html{suffix}"
        assert clew("--home", demo, "export", LATEST, "--carry", "--redact", "none", "-o", page).code == 0
        assert clew("import", page, "--stdout").raw == native.read_bytes()


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (("--to", "json"), "x.html"),
        (("--to", "markdown"), "x.html.gz"),
        (("--to", "html"), "x.json"),
        (("--json",), "x.md"),
        (("--to", "ndjson"), "x.md.zst"),
    ],
)
def test_a_name_that_says_another_format_is_refused(
    demo: Path, tmp_path: Path, options: tuple[str, ...], name: str
) -> None:
    ran = clew("--home", demo, "export", LATEST, *options, "-o", tmp_path / name)
    assert ran.code == 2 and "cannot be combined" in ran.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["json", "ndjson", "markdown", "html", "atif", "otel"])
@pytest.mark.parametrize(("option", "name"), [("--gz", "x.txt"), ("--gz", "x.txt.zst"), ("--zst", "x.txt.gz")])
def test_a_name_that_does_not_say_the_compression_is_refused(
    demo: Path, tmp_path: Path, form: str, option: str, name: str
) -> None:
    ran = clew("--home", demo, "export", LATEST, "--format", form, option, "-o", tmp_path / name)
    assert ran.code == 2
    assert f"name the file x.txt{'.gz' if option == '--gz' else '.zst'}" in ran.err
    assert not list(tmp_path.iterdir())
    assert clew("--home", demo, "export", LATEST, "--format", form, option, "-o", tmp_path / "x").code == 0


def test_a_folder_may_be_called_anything(demo: Path, tmp_path: Path) -> None:
    (tmp_path / "pages.md").mkdir()
    assert clew("--home", demo, "export", LATEST, "-o", tmp_path / "pages.md").code == 0
    assert [path.suffix for path in (tmp_path / "pages.md").iterdir()] == [".json"]


def test_a_document_may_leave_the_native_records_out(demo: Path) -> None:
    done = clew("--home", demo, "export", "f005", "--no-native")
    assert "native" not in done.json and len(done.json["messages"]) == 8
    refused = clew("--home", demo, "export", "f005", "--to", "markdown", "--no-native")
    assert refused.code == 2 and "--no-native" in refused.err


def test_a_suffix_that_no_format_has_is_refused(demo: Path, tmp_path: Path) -> None:
    done = clew("--home", demo, "export", FORKED, "-o", tmp_path / "x.pdf")
    assert done.code == 2 and ".pdf" in done.err and ".json, .ndjson, .md, .html" in done.err
    assert not list(tmp_path.glob("x*"))
    assert clew("--home", demo, "export", FORKED, "--to", "json", "-o", tmp_path / "x.txt").code == 0
    assert clew("--home", demo, "export", FORKED, "-o", tmp_path / "plain").code == 0


def test_markdown_is_called_md_too(demo: Path, tmp_path: Path) -> None:
    long, short = (clew("--home", demo, "export", FORKED, "--to", name) for name in ("markdown", "md"))
    assert (short.code, short.raw) == (0, long.raw)
    assert clew("--home", demo, "export", FORKED, "-o", tmp_path / "a.md").code == 0
    assert clew("--home", demo, "export", FORKED, "-o", tmp_path / "a.jsonl").code == 0
    assert len((tmp_path / "a.jsonl").read_bytes().splitlines()) == 1


@pytest.mark.parametrize("second", ["broken", "there"])
def test_of_several_documents_all_are_imported_or_none(demo: Path, tmp_path: Path, second: str) -> None:
    for name, session in (("a", FORKED), ("b", LATEST)):
        assert clew("--home", demo, "export", session, "-o", tmp_path / f"{name}.json").code == 0
    home = tmp_path / "home"
    home.mkdir()
    if second == "broken":
        (tmp_path / "b.json").write_text("{}")
    else:
        assert clew("import", tmp_path / "b.json", "-o", home).code == 0
    before = [path for path in home.rglob("*") if path.is_file()]
    done = clew("import", tmp_path / "a.json", tmp_path / "b.json", "-o", home)
    assert done.code == (4 if second == "broken" else 6)
    assert [path for path in home.rglob("*") if path.is_file()] == before


@pytest.mark.skipif(os.name == "nt", reason="file names on Windows are Unicode")
def test_a_file_name_that_is_not_utf_8_is_exported_with_its_bytes_escaped(tmp_path: Path) -> None:
    folder = tmp_path / "home" / ".claude" / "projects" / "-w"
    folder.mkdir(parents=True)
    path = folder / os.fsdecode(b"caf\xe9.jsonl")
    path.write_text(json.dumps(claude_line("user", "u1", None, sessionId=SESSION)) + "\n")
    home = tmp_path / "home"
    assert clew("--home", home, "verify").code == 0
    printed = clew("--home", home, "export", path)
    assert printed.code == 0 and printed.json["session"]["source"]["path"].endswith(r"caf\xe9.jsonl")
    for option, name in (("-o", "out"), ("--site", "site"), ("-o", "all.ndjson")):
        assert clew("--home", home, "export", option, tmp_path / name).code == 0


def test_a_site_leaves_out_what_cannot_be_read(demo: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(demo, home)
    assert clew("--home", home, "sync").code == 0
    by_agent = {session.agent.id: session.path for session in sources(home)}
    for path in by_agent.values():
        path.unlink()
        os.mkfifo(path)
    done = clew("--home", home, "--no-sync", "export", "--site", tmp_path / "site")
    assert done.code == 3 and "not a regular file" in done.err
    assert len(list((tmp_path / "site").glob("*.html"))) == 28 - len(by_agent) + 1


@pytest.mark.parametrize("name", ["two.html", "two.md", "two.json"])
def test_several_sessions_make_no_folder_with_the_name_of_a_file(demo: Path, tmp_path: Path, name: str) -> None:
    ran = clew("--home", demo, "export", LATEST, FORKED, "-o", tmp_path / name)
    assert ran.code == 2 and f"{name}: several sessions go to a folder" in ran.err
    assert not list(tmp_path.iterdir())


def test_each_suffix_is_named_once(demo: Path, tmp_path: Path) -> None:
    ran = clew("--home", demo, "export", LATEST, "-o", tmp_path / "x.pdf")
    assert ran.code == 2 and ran.err.count(".md") == 1
