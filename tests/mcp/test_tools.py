"""`clew mcp` answers the SDK's own client: tools and resources, over standard input and output."""

import json
import time
from pathlib import Path

import pytest

from clew.mcp.answers import MAX_ANSWER_CHARS
from tests.cli.running import FORKED, LATEST, WITH_AGENTS, clew
from tests.mcp.client import Client, ToolFailed, connect
from tests.mcp.sessions import write_session

TOOLS = {"search", "list_sessions", "show", "files", "file_at", "blame", "todos", "stats", "resume_command"}


def test_every_tool_is_listed_as_one_that_only_reads(client: Client) -> None:
    tools = client.ask("list_tools").tools
    assert {tool.name for tool in tools} == TOOLS
    for tool in tools:
        assert tool.annotations.read_only_hint
        assert not tool.annotations.open_world_hint
        assert tool.description
        assert tool.input_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
        assert "$ref" not in json.dumps(tool.input_schema)


def test_a_hit_can_be_cited_and_shown(client: Client) -> None:
    hit = client.call("search", query="tide")["results"][0]
    agent, _, rest = hit["ref"].partition(":")
    assert agent
    assert rest
    assert "«" in hit["text"]
    shown = client.call("show", session=hit["ref"])
    assert shown["results"][0]["ref"].startswith(hit["ref"].partition("#")[0])


def test_hits_are_those_of_the_command(client: Client, synced_demo: Path) -> None:
    found = clew("--home", synced_demo, "search", "tide", "-n", "30", "--json").json
    expected = [
        f"{hit['agent']}:{hit['session']}" + (f"#{hit['message']}" if hit["message"] else "") for hit in found["hits"]
    ]
    pages = client.pages("search", query="tide", limit=10)
    refs = [row["ref"] for _, page in zip(range(3), pages, strict=False) for row in page["results"]]
    assert refs == expected
    *_, last = client.pages("search", query="tide", limit=100)
    assert last["total"] == found["total"]


def test_sessions_are_those_of_the_command_page_by_page(client: Client, synced_demo: Path) -> None:
    listed = clew("--home", synced_demo, "list", "--json").json
    expected = [f"{row['agent']}:{row['id']}" for row in listed]
    assert [row["ref"] for row in client.results("list_sessions", limit=7, subagents=True)] == expected
    of_codex = client.results("list_sessions", agent=["codex"], subagents=True)
    assert [row["ref"] for row in of_codex] == [ref for ref in expected if ref.startswith("codex:")]


def test_filters_are_those_of_the_command(client: Client, synced_demo: Path) -> None:
    for filters in (
        {"project": "tide"},
        {"since": "2025-01-01"},
        {"has": ["error"]},
        {"tool": "Bash"},
        {"text": "tide"},
    ):
        options = [
            word
            for name, value in filters.items()
            for word in (f"--{name}", *([value] if isinstance(value, str) else value))
        ]
        listed = clew("--home", synced_demo, "list", "--json", *options)
        expected = {f"{row['agent']}:{row['id']}" for row in (listed.json if listed.raw.strip() else [])}
        assert expected, filters
        assert {row["ref"] for row in client.results("list_sessions", subagents=True, **filters)} == expected, filters


def test_short_messages_fit_into_an_answer_too(tmp_path: Path) -> None:
    write_session(tmp_path, *(("user", f"line {number}") for number in range(2000)))
    with connect(tmp_path) as client:
        pages = list(client.pages("show", session="s1"))
        assert all(len(json.dumps(page)) < 1.1 * MAX_ANSWER_CHARS for page in pages)
        texts = [row["text"] for page in pages for row in page["results"]]
        assert [f"line {number}" in text for number, text in enumerate(texts)] == [True] * 2000
        with pytest.raises(ToolFailed, match="no message 0"):
            client.call("show", session="s1#0")


def test_a_range_of_messages_at_each_level_of_detail(client: Client) -> None:
    whole = client.results("show", session=f"claude-code:{LATEST}", detail="full")
    numbers = [int(row["ref"].rpartition("#")[2]) for row in whole]
    assert numbers == sorted(numbers)
    assert all(row["ref"].startswith(f"claude-code:{LATEST}#") for row in whole)
    part = client.results("show", session=LATEST, first=numbers[1], last=numbers[2], detail="full")
    assert part == whole[1:3]
    lengths = [
        sum(len(row["text"]) for row in client.results("show", session=LATEST, detail=detail))
        for detail in ("prompts", "conversation", "actions", "full")
    ]
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]


def test_one_message_is_shown_in_full(client: Client) -> None:
    (shown,) = client.results("show", session=f"{LATEST}#2")
    assert shown["ref"] == f"claude-code:{LATEST}#2"


def test_messages_beyond_the_end_are_an_error(client: Client) -> None:
    with pytest.raises(ToolFailed, match="has no message 9000"):
        client.call("show", session=LATEST, first=9000)


def test_every_session_is_shown_with_the_title_of_the_list(client: Client) -> None:
    for row in client.results("list_sessions", subagents=True):
        assert client.call("show", session=row["ref"])["title"] == row["title"]


def test_a_title_of_the_user_is_shown_masked(synced_demo: Path, tmp_path: Path) -> None:
    secret = "AKIA" + "Q3EGRJ2X5LMN7OPT"
    assert clew("--home", synced_demo, "annotate", "set", LATEST, "--title", f"Harbour {secret}").code == 0
    with connect(synced_demo, cwd=tmp_path) as client:
        (listed,) = (row for row in client.results("list_sessions") if row["ref"] == f"claude-code:{LATEST}")
        shown = client.call("show", session=LATEST)["title"]
        (content,) = client.ask("read_resource", f"clew://session/claude-code/{LATEST}").contents
    assert shown.startswith("Harbour [REDACTED")
    assert shown == listed["title"]
    assert content.text.startswith(f"# {shown}\n")
    with connect(synced_demo, "--redact", "none", cwd=tmp_path) as client:
        assert client.call("show", session=LATEST)["title"] == f"Harbour {secret}"


def test_a_long_session_is_read_page_by_page_without_loss(home: Path, tmp_path: Path) -> None:
    long = "".join(f"word{number} " for number in range(20_000))
    write_session(home, ("user", long))
    with connect(home, cwd=tmp_path) as client:
        pages = list(client.pages("show", session="s1"))
    assert len(pages) > 3
    assert all(len(json.dumps(page)) < 2 * MAX_ANSWER_CHARS for page in pages)
    assert long.strip() in "".join(row["text"] for page in pages for row in page["results"])


def test_files_and_a_file_at_a_message(client: Client, synced_demo: Path) -> None:
    listed = clew("--home", synced_demo, "files", LATEST, "--json").json
    rows = client.results("files", session=LATEST)
    assert [row["ref"] for row in rows] == [f"claude-code:{LATEST}#{row['message']}" for row in listed]
    changes = client.results("files", session=LATEST, changes=True)
    assert changes
    assert "read" not in {row["action"] for row in changes}
    known = next(row for row in listed if row["after"] and row["after"]["certainty"] == "exact" and row["result"])
    at = client.call("file_at", session=LATEST, message=known["result"], path=known["path"])
    printed = clew("--home", synced_demo, "show", f"{LATEST}#{known['result']}", "--file", known["path"])
    assert at["content"] == printed.out
    assert at["ref"].startswith(f"claude-code:{LATEST}#")
    assert at["certainty"] == "exact"
    # A hash would tell whether a guess of what is masked in a file is right.
    assert "sha256" in known["after"]
    assert "sha256" not in json.dumps([rows, at])


def test_blame_names_session_message_and_prompt_of_lines(client: Client, synced_demo: Path, tmp_path: Path) -> None:
    listed = clew("--home", synced_demo, "files", LATEST, "--json").json
    known = next(
        row
        for row in reversed(listed)
        if row["action"] != "read" and row["after"] and row["after"]["certainty"] == "exact" and row["result"]
    )
    shown = clew("--home", synced_demo, "show", f"{LATEST}#{known['result']}", "--file", known["path"])
    file = tmp_path / "now.py"
    file.write_bytes(shown.raw + b"a line that nobody recorded\n")
    blamed = clew("--home", synced_demo, "blame", file, "--as", known["path"], "--json").json
    rows = client.results("blame", path=str(file), recorded_path=known["path"])
    expected = {line["line"]: line for line in blamed}
    seen = set()
    for row in rows:
        for number in range(row["first"], row["last"] + 1):
            seen.add(number)
            line = expected[number]
            wanted = f"{line['agent']}:{line['session']}#{line['message']}" if line["session"] else None
            assert row["ref"] == wanted
    assert seen == set(expected)
    proved = [row for row in rows if row["ref"]]
    assert proved
    assert proved[0]["prompt"]["ref"].startswith("claude-code:")
    assert rows[-1]["ref"] is None
    assert "nobody recorded" not in json.dumps(rows)
    assert client.results("blame", path=str(file), recorded_path=known["path"], containing="nobody recorded") == []


def test_todos_stats_and_resume_command(client: Client, synced_demo: Path) -> None:
    with_todos = next(
        row["id"]
        for row in clew("--home", synced_demo, "list", "--json").json
        if clew("--home", synced_demo, "todos", f"{row['agent']}:{row['id']}", "--json").code == 0
    )
    rows = client.results("todos", session=with_todos)
    expected = clew("--home", synced_demo, "todos", with_todos, "--json").json
    assert [row["ref"].rpartition(":")[2] for row in rows] == [f"{with_todos}#{row['index']}" for row in expected]
    assert [row["todos"] for row in rows] == [row["todos"] for row in expected]
    stats = client.call("stats", by="model")
    expected = clew("--home", synced_demo, "stats", "--by", "model", "--json").json
    assert stats["totals"]["sessions"] == expected["totals"]["sessions"]
    assert {row["model"] for row in client.results("stats", by="model", limit=3)} == {
        row["model"] for row in expected["rows"]
    }
    assert all(":" in ref for ref in stats["largest_sessions"])
    command = client.call("resume_command", session=WITH_AGENTS)
    assert command["ref"] == f"claude-code:{WITH_AGENTS}"
    assert "claude" in command["commands"][-1]
    converted = client.call("resume_command", session=WITH_AGENTS, to="codex")
    assert converted["commands"][0].startswith("clew ")
    assert "--to codex" in converted["commands"][0]


def test_commands_name_the_home_from_the_root(synced_demo: Path) -> None:
    with connect(Path(synced_demo.name), cwd=synced_demo.parent) as client:
        converted = client.call("resume_command", session=WITH_AGENTS, to="codex")
    assert f"--home {synced_demo}" in converted["commands"][0]


def test_sessions_are_resources(client: Client) -> None:
    listed = client.ask("list_resources")
    uris = [resource.uri for resource in listed.resources]
    assert f"clew://session/claude-code/{FORKED}" in uris
    (content,) = client.ask("read_resource", f"clew://session/claude-code/{LATEST}").contents
    first = client.results("show", session=LATEST)[0]["ref"]
    assert f"\n{first}\n" in content.text
    assert content.mime_type == "text/markdown"
    (later,) = client.ask("read_resource", f"clew://session/claude-code/{LATEST}/5").contents
    assert f"\n{first}\n" not in later.text
    assert later.text.count(f"claude-code:{LATEST}#")
    assert {template.name for template in client.ask("list_resource_templates").resource_templates} == {
        "session",
        "message",
    }


def test_resources_can_be_listed_before_there_is_a_catalog(home: Path, tmp_path: Path) -> None:
    with connect(home, cwd=tmp_path) as client:
        assert client.ask("list_resources").resources == []


def test_secrets_are_masked_unless_told_otherwise(home: Path, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    write_session(home, ("user", f"the walnut token is {secret}"))
    with connect(home, cwd=tmp_path) as client:
        for answer in (
            client.text("search", query="walnut"),
            client.text("show", session="s1"),
            client.text("list_sessions"),
        ):
            assert secret not in answer
            assert "REDACTED" in answer
    with connect(home, "--redact", "none", cwd=tmp_path) as client:
        assert secret in client.text("search", query="walnut")
        assert secret in client.text("show", session="s1")


def test_masked_text_cannot_be_guessed_by_filters(home: Path, tmp_path: Path) -> None:
    """Whether a filter matches must not depend on what the answer hides."""
    secret = "ghp_" + "a1B2" * 9
    name = "PRIVATE" + " KEY-----"
    key = [f"-----BEGIN {name}", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", f"-----END {name}"]
    content = "\n".join(["walnut = 1", f"token = {secret}", *key, ""])
    file = tmp_path / f"{secret}.py"
    call = {"type": "tool_use", "id": "t1", "name": "Write", "input": {"file_path": str(file), "content": content}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": f"File created successfully at: {file}"}
    write_session(home, ("assistant", [call]), ("user", [result]), cwd=str(tmp_path))
    file.write_text(f"{content}secret of nobody\n")
    blame = {"path": str(file)}
    with connect(home, cwd=tmp_path) as client:
        (written, unknown) = client.results("blame", **blame)
        assert unknown == {"ref": None, "first": 6, "last": 6}
        assert [row["first"] for row in client.results("blame", **blame, containing="walnut")] == [1]
        for hidden in (secret[:6], key[1][:6], "secret of"):
            assert hidden not in written["text"]
            assert client.results("blame", **blame, containing=hidden) == []
        assert key[1] not in client.text("blame", **blame, first=4, last=4)
        (row,) = client.results("files", session="s1", path="REDACTED")
        assert secret not in row["path"]
        assert client.call("files", session="s1", path=secret[:6])["total"] == 0


def test_new_sessions_are_found_without_a_restart(home: Path, tmp_path: Path) -> None:
    (home / ".claude" / "projects").mkdir(parents=True)
    with connect(home, cwd=tmp_path) as client:
        assert client.call("list_sessions")["results"] == []
        write_session(home, ("user", "walnuts"), session="s2")
        deadline = 20
        while not (found := client.call("search", query="walnuts")["results"]) and deadline:
            deadline -= 1
            time.sleep(0.5)
        assert found[0]["ref"] == "claude-code:s2#1"


def test_without_sync_the_answer_says_so(client: Client, synced_demo: Path, tmp_path: Path) -> None:
    with connect(synced_demo, "--no-sync", cwd=tmp_path) as other:
        assert "--no-sync" in other.call("list_sessions")["notes"][0]
    assert "notes" not in client.call("list_sessions")


def test_an_unknown_session_is_an_error_of_the_tool(client: Client) -> None:
    with pytest.raises(ToolFailed, match="no session matches"):
        client.call("show", session="no-such-session")
    with pytest.raises(ToolFailed, match="has no message 9999"):
        client.call("show", session=f"{LATEST}#9999")
