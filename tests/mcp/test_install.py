"""`clew mcp install` changes the configuration of agents, and `uninstall` brings back what was there."""

import json
import tomllib
from pathlib import Path

import pytest

from clew.config_file_edits import BACKUPS_FILE, Backup
from clew.host import data_dir
from clew.io.json_file import load
from tests.cli.running import Ran, clew

FILES = {"claude-code": ".claude.json", "codex": ".codex/config.toml", "gemini": ".gemini/settings.json"}
CONTENT = {
    "claude-code": '{\n    "numStartups": 3,\n    "mcpServers": {"other": {"command": "x"}}\n}',
    "codex": '# My models.\nmodel = "x" # the best\n\n[mcp_servers.other]\ncommand = "x"',
    "gemini": '{"theme": "dark"}\n',
}
FIRST_LINE = "# clew mcp: added by `clew mcp install`, removed by `clew mcp uninstall`"
every_agent = pytest.mark.parametrize("agent", FILES)


def servers(path: Path) -> dict[str, dict[str, object]]:
    text = path.read_text()
    values = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    found: dict[str, dict[str, object]] = values.get("mcp_servers" if path.suffix == ".toml" else "mcpServers", {})
    return found


def config(home: Path, agent: str) -> Path:
    path = home / FILES[agent]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(CONTENT[agent])
    return path


def change(verb: str, agent: str, *options: str | Path) -> Ran:
    return clew("mcp", verb, "--agent", agent, *options)


@every_agent
def test_install_adds_the_server_and_uninstall_restores_every_byte(agent: str, home: Path) -> None:
    path = config(home, agent)
    path.chmod(0o640)
    shown = change("install", agent)
    assert shown.code == 0
    assert "+++" in shown.out and "clew" in shown.out
    found = servers(path)
    assert found["clew"]["args"][-1] == "mcp"  # type: ignore[index]
    assert path.stat().st_mode & 0o777 == 0o640
    assert {name: value for name, value in found.items() if name != "clew"} == servers_in(CONTENT[agent], path)
    assert "nothing to change" in change("install", agent).err
    assert change("uninstall", agent).code == 0
    assert path.read_text() == CONTENT[agent]
    assert change("uninstall", agent).code == 1


def servers_in(text: str, like: Path) -> dict[str, dict[str, object]]:
    copy = like.with_name(f"copy{like.suffix}")
    copy.write_text(text)
    try:
        return servers(copy)
    finally:
        copy.unlink()


@every_agent
def test_a_new_file_is_removed_again(agent: str, home: Path) -> None:
    path = home / FILES[agent]
    assert change("install", agent).code == 0
    assert path.stat().st_mode & 0o077 == 0
    assert "clew" in servers(path)
    change("uninstall", agent)
    assert not path.exists()


@every_agent
def test_a_dry_run_changes_nothing(agent: str, home: Path) -> None:
    path = config(home, agent)
    assert "+++" in change("install", agent, "--dry-run").out
    assert path.read_text() == CONTENT[agent]
    change("install", agent)
    installed = path.read_text()
    assert "---" in change("uninstall", agent, "--dry-run").out
    assert path.read_text() == installed


@every_agent
def test_changes_of_others_since_then_stay(agent: str, home: Path) -> None:
    path = config(home, agent)
    change("install", agent)
    text = path.read_text()
    path.write_text(f"{text}\n[later]\nx = 1 # kept\n" if agent == "codex" else text.replace("{", '{"later": 1,', 1))
    assert change("uninstall", agent).code == 0
    assert "clew" not in servers(path)
    assert "later" in path.read_text()
    if agent == "codex":
        assert "# My models." in path.read_text()
        assert "x = 1 # kept" in path.read_text()
    removed = path.read_text()
    assert load(data_dir() / BACKUPS_FILE, Backup) == {}
    assert change("uninstall", agent).code == 1
    assert path.read_text() == removed
    change("install", agent, "--redact", "all")
    assert change("uninstall", agent).code == 0
    assert path.read_text() == removed


@every_agent
def test_uninstall_removes_an_entry_that_was_replaced_after_changes_of_others(agent: str, home: Path) -> None:
    path = config(home, agent)
    change("install", agent)
    text = path.read_text()
    path.write_text(f"{text}\n[later]\nx = 1\n" if agent == "codex" else text.replace("{", '{"later": 1,', 1))
    change("install", agent, "--redact", "all")
    assert change("uninstall", agent).code == 0
    assert "clew" not in servers(path)
    assert "later" in path.read_text()


@pytest.mark.parametrize("content", ['{"theme": "dark"}', '{"theme": "dark", "mcpServers": {}}'])
def test_an_empty_table_is_left_only_where_there_was_one(content: str, home: Path) -> None:
    path = config(home, "gemini")
    path.write_text(content)
    change("install", "gemini")
    path.write_text(path.read_text() + "\n")
    assert change("uninstall", "gemini").code == 0
    assert json.loads(path.read_text()) == json.loads(content)


@every_agent
def test_a_file_with_nothing_but_the_server_is_removed(agent: str, home: Path) -> None:
    path = home / FILES[agent]
    change("install", agent)
    (data_dir() / BACKUPS_FILE).unlink()
    change("install", agent, "--redact", "all")
    assert change("uninstall", agent).code == 0
    assert not path.exists()


@every_agent
def test_other_settings_replace_the_entry_and_one_uninstall_still_restores(agent: str, home: Path) -> None:
    path = config(home, agent)
    change("install", agent)
    change("install", agent, "--redact", "all")
    assert servers(path)["clew"]["args"][-2:] == ["--redact", "all"]  # type: ignore[index]
    change("uninstall", agent)
    assert path.read_text() == CONTENT[agent]


@every_agent
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_new_lines_end_like_the_others(agent: str, mark: str, home: Path) -> None:
    path = config(home, agent)
    content = (mark + CONTENT[agent].replace("\n", "\r\n")).encode()
    path.write_bytes(content)
    change("install", agent)
    written = path.read_bytes()
    assert written.count(b"\n") == written.count(b"\r\n") >= content.count(b"\n")
    assert "nothing to change" in change("install", agent).err
    change("uninstall", agent)
    assert path.read_bytes() == content


@every_agent
def test_an_entry_is_found_after_an_editor_added_a_byte_order_mark(agent: str, home: Path) -> None:
    path = home / FILES[agent]
    change("install", agent)
    path.write_text("\ufeff" + path.read_text())
    assert "nothing to change" in change("install", agent).err
    assert change("uninstall", agent).code == 0
    assert not path.exists()


def test_a_first_line_that_the_user_left_begins_no_entry(home: Path) -> None:
    path = config(home, "codex")
    content = f"{FIRST_LINE}\n{CONTENT['codex']}\n"
    path.write_text(content)
    change("install", "codex")
    path.write_text(path.read_text() + "# later\n")
    assert change("uninstall", "codex").code == 0
    assert path.read_text() == f"{content}# later\n"


@every_agent
def test_an_entry_is_found_after_an_editor_changed_the_line_ends(agent: str, home: Path) -> None:
    path = config(home, agent)
    change("install", agent)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert change("install", agent, "--redact", "all").code == 0
    assert servers(path)["clew"]["args"][-2:] == ["--redact", "all"]  # type: ignore[index]
    assert change("uninstall", agent).code == 0
    assert path.read_bytes().decode().rstrip() == CONTENT[agent].replace("\n", "\r\n").rstrip()


@every_agent
def test_a_link_is_not_followed(agent: str, home: Path, tmp_path: Path) -> None:
    path = config(home, agent)
    target = tmp_path / "elsewhere"
    path.rename(target)
    path.symlink_to(target)
    assert change("install", agent).code != 0
    assert target.read_text() == CONTENT[agent]
    assert path.is_symlink()


def test_a_linked_folder_is_not_followed(home: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (home / ".codex").symlink_to(tmp_path / "elsewhere")
    assert change("install", "codex").code != 0
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize(
    ("agent", "text"),
    [
        ("gemini", '{\n  // the theme\n  "theme": "dark"\n}'),
        ("gemini", '{"mcpServers": []}'),
        ("gemini", '{"a": 1, "a": 2}'),
        ("gemini", "[]"),
        ("codex", "model = "),
        ("codex", 'mcp_servers = { other = { command = "x" } }'),
        ("codex", f'note = """\n{FIRST_LINE}\na text of the user\n# clew mcp: end\n"""\n'),
    ],
)
def test_what_cannot_be_changed_safely_is_refused(agent: str, text: str, home: Path) -> None:
    path = config(home, agent)
    path.write_text(text)
    refused = change("install", agent)
    assert refused.code in (2, 3)
    assert "internal error" not in refused.err
    assert path.read_text() == text


def write_server(path: Path, entry: dict[str, object]) -> str:
    """Write a file with one server `clew`, as a user would."""
    if path.suffix == ".toml":
        text = "\n".join(["[mcp_servers.clew]", *(f"{name} = {json.dumps(value)}" for name, value in entry.items())])
    else:
        text = json.dumps({"mcpServers": {"clew": entry}})
    path.write_text(text)
    return text


@every_agent
@pytest.mark.parametrize(
    "entry",
    [
        {"command": "mine"},
        {"command": "mine", "args": ["mcp"], "note": "x"},
        {"command": "clew", "args": ["--home", "/srv", "mcp"]},
        {"command": "clew", "args": ["mcp", "--home", "/srv"]},
        {"command": "git", "args": ["-C", "/src/clew", "mcp"]},
        {"command": "clew", "args": "mcp"},
        {"command": "clew", "args": ["mcp", 1]},
        {"url": "https://example.com/mcp"},
    ],
)
def test_a_server_of_this_name_that_clew_did_not_add_stays(agent: str, entry: dict[str, object], home: Path) -> None:
    path = config(home, agent)
    text = write_server(path, entry)
    for verb, advice in (("install", "change it by hand"), ("uninstall", "remove it by hand")):
        refused = change(verb, agent)
        assert refused.code == 6
        assert refused.err == f"clew: {path}: the server 'clew' was not added by clew; {advice}\n"
        assert path.read_text() == text
    assert not (data_dir() / BACKUPS_FILE).exists()


@every_agent
def test_a_server_that_the_user_changed_since_stays(agent: str, home: Path) -> None:
    path = config(home, agent)
    change("install", agent)
    text = path.read_text().replace('"mcp"', '"mcp", "--home", "/srv"')
    path.write_text(text)
    assert change("install", agent).code == 6
    assert change("uninstall", agent).code == 6
    assert path.read_text() == text


@pytest.mark.parametrize("agent", ["claude-code", "gemini"])
@pytest.mark.parametrize("words", [["/gone/bin/clew", "mcp"], ["/gone/python", "-P", "-m", "clew", "mcp"]])
def test_the_server_of_another_installation_is_replaced_and_keeps_other_keys(
    agent: str, words: list[str], home: Path
) -> None:
    path = config(home, agent)
    write_server(path, {"command": words[0], "args": words[1:], "env": {"K": "v"}})
    assert change("install", agent, "--redact", "all").code == 0
    entry = servers(path)["clew"]
    assert "/gone" not in json.dumps(entry)
    assert entry["args"][-2:] == ["--redact", "all"]  # type: ignore[index]
    assert entry["env"] == {"K": "v"}
    assert change("uninstall", agent).code == 0
    assert not path.exists()


def test_keys_that_the_user_added_to_the_server_in_toml_are_not_dropped(home: Path) -> None:
    path = config(home, "codex")
    change("install", "codex")
    text = path.read_text().replace("# clew mcp: end", "startup_timeout_sec = 20\n# clew mcp: end")
    path.write_text(text)
    refused = change("install", "codex", "--redact", "all")
    assert refused.code == 3
    assert "by hand" in refused.err
    assert path.read_text() == text
    assert change("uninstall", "codex").code == 0
    assert "clew" not in path.read_text()


def test_secrets_of_other_servers_are_masked_in_the_change(home: Path) -> None:
    path = config(home, "claude-code")
    secret = "ghp_" + "a1B2" * 9
    path.write_text(json.dumps({"mcpServers": {"other": {"env": {"GITHUB_TOKEN": secret}}}}, indent=2))
    shown = change("install", "claude-code")
    assert secret not in shown.out + shown.err
    assert secret in path.read_text()
    assert secret not in change("uninstall", "claude-code").out


def test_the_file_of_a_project_names_only_the_program(home: Path, tmp_path: Path) -> None:
    assert change("install", "claude-code", "--project", tmp_path).code == 0
    entry = json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"]["clew"]
    assert entry == {"type": "stdio", "command": "clew", "args": ["mcp"]}
    assert not (home / ".claude.json").exists()
    assert change("install", "codex", "--project", tmp_path).code == 2


def test_the_configuration_of_a_named_home_is_changed(home: Path, tmp_path: Path) -> None:
    assert clew("--home", tmp_path, "mcp", "install", "--agent", "gemini").code == 0
    assert (tmp_path / ".gemini" / "settings.json").is_file()
    other = tmp_path / "other"
    other.mkdir()
    assert change("install", "gemini", "--home", other).code == 0
    assert (other / ".gemini" / "settings.json").is_file()
    assert not (home / ".gemini").exists()


def test_an_agent_without_known_configuration_is_named(home: Path) -> None:
    refused = change("install", "pi")
    assert refused.code == 2
    assert "claude-code, codex, gemini" in refused.err


def test_without_the_extra_one_line_says_what_is_missing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.extras.find_spec", lambda _name: None)
    advice = "needs mcp, mcp_types: pip install '.[mcp]' in a clone of clew\n"
    refused = clew("mcp")
    assert (refused.code, refused.err) == (2, f"clew: this {advice}")
    installed = change("install", "gemini")
    assert installed.code == 0
    assert installed.err.endswith(f"clew: the server will not start: it {advice}")
    assert "clew" in servers(home / FILES["gemini"])
