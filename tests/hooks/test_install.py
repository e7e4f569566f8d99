"""`clew hook install` adds a hook to the configuration of agents, and `uninstall` brings back what was there."""

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from clew.config_file_edits import BACKUPS_FILE, Backup
from clew.host import data_dir
from clew.io.json_file import load
from tests.cli.running import Ran, clew

FILES = {"claude-code": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini": ".gemini/settings.json"}
OWN_HOOK = {"matcher": "clear", "hooks": [{"type": "command", "command": "say bye"}]}
CONTENTS = (
    '{"theme":  "dark"}\n',
    '{\n    "model": "x",\n    "permissions": {"allow": ["Bash(ls:*)",\n "Read"]}\n}',
    '{\n\t"hooks": {\n\t\t"SessionEnd": [{"hooks": [{"type": "command", "command": "say bye"}]}]\n\t}\n}\n',
    '{"hooks": {"Stop": []}, "later": null}\r\n',
    "{}",
)
every_agent = pytest.mark.parametrize("agent", FILES)


def config(home: Path, agent: str, content: str | None = None) -> Path:
    path = home / FILES[agent]
    path.parent.mkdir(parents=True, exist_ok=True)
    if content is not None:
        path.write_bytes(content.encode())
    return path


def change(verb: str, agent: str, *options: str | Path) -> Ran:
    return clew("hook", verb, "--agent", agent, *options)


def groups(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_bytes())["hooks"]["SessionEnd"]
    return found


@every_agent
@pytest.mark.parametrize("content", CONTENTS)
def test_install_adds_the_hook_and_uninstall_restores_every_byte(agent: str, content: str, home: Path) -> None:
    path = config(home, agent, content)
    path.chmod(0o640)
    shown = change("install", agent)
    assert shown.code == 0
    assert "+++" in shown.out and f"hook run --agent {agent}" in shown.out
    assert groups(path)[-1]["hooks"][0]["command"].endswith(f"hook run --agent {agent}")
    assert path.stat().st_mode & 0o777 == 0o640
    assert "nothing to change" in change("install", agent).err
    assert change("uninstall", agent).code == 0
    assert path.read_bytes() == content.encode()
    assert change("uninstall", agent).code == 1
    assert load(data_dir() / BACKUPS_FILE, Backup) == {}


@every_agent
def test_what_is_not_of_clew_keeps_its_bytes(agent: str, home: Path) -> None:
    content = CONTENTS[1]
    path = config(home, agent, content)
    change("install", agent)
    assert path.read_text().startswith(content.removesuffix("\n}"))


@every_agent
def test_a_new_file_and_its_folder_are_removed_again(agent: str, home: Path) -> None:
    assert change("install", agent).code == 0
    path = home / FILES[agent]
    assert path.stat().st_mode & 0o077 == 0
    change("uninstall", agent)
    assert not path.parent.exists()


@every_agent
def test_a_new_file_that_was_changed_since_is_kept_without_the_hook(agent: str, home: Path) -> None:
    path = config(home, agent)
    change("install", agent)
    path.write_text(path.read_text().replace("{", '{"later": 1,', 1))
    assert change("uninstall", agent).code == 0
    assert json.loads(path.read_text()) == {"later": 1}
    change("install", agent)
    change("uninstall", agent)
    path.unlink()
    change("install", agent)
    path.write_text(path.read_text() + "\n")
    change("uninstall", agent)
    assert not path.exists()


@every_agent
def test_hooks_of_the_user_stay(agent: str, home: Path) -> None:
    path = config(home, agent, json.dumps({"hooks": {"SessionEnd": [OWN_HOOK]}}))
    change("install", agent)
    assert groups(path)[0] == OWN_HOOK
    later = {"hooks": [{"type": "command", "command": "say later"}]}
    values = json.loads(path.read_text())
    values["hooks"]["SessionEnd"].append(later)
    path.write_text(json.dumps(values))
    assert change("uninstall", agent).code == 0
    assert groups(path) == [OWN_HOOK, later]


@every_agent
def test_a_hook_of_clew_with_another_program_is_replaced_in_its_place(agent: str, home: Path) -> None:
    moved = {"hooks": [{"type": "command", "command": f"/gone/bin/clew hook run --agent {agent}", "timeout": 3}]}
    path = config(home, agent, json.dumps({"hooks": {"SessionEnd": [moved, OWN_HOOK]}}))
    assert "its program is gone" in clew("hook", "status").out
    assert change("install", agent).code == 0
    assert "its program is gone" not in clew("hook", "status").out
    first, second = groups(path)
    assert "/gone" not in first["hooks"][0]["command"]
    assert second == OWN_HOOK
    assert change("uninstall", agent).code == 0
    assert groups(path) == [OWN_HOOK]


def old_hook(agent: str) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": f"/gone/bin/clew hook run --agent {agent}"}]}


@every_agent
@pytest.mark.parametrize("is_replaced", [False, True])
def test_nothing_is_left_of_a_hook_that_another_installation_added(agent: str, is_replaced: bool, home: Path) -> None:
    for user_values in ({"theme": "dark"}, {"theme": "dark", "hooks": {"Stop": []}}, {}):
        hooks = {**user_values.get("hooks", {}), "SessionEnd": [old_hook(agent)]}  # type: ignore[dict-item]
        path = config(home, agent, json.dumps({**user_values, "hooks": hooks}))
        if is_replaced:
            change("install", agent)
        assert change("uninstall", agent).code == 0
        assert (json.loads(path.read_text()) if path.exists() else {}) == user_values
    assert not path.exists()


@every_agent
@pytest.mark.parametrize("content", ['{"hooks": {}}', '{"hooks": {"SessionEnd": []}}', "{}"])
def test_empty_values_of_the_user_stay(agent: str, content: str, home: Path) -> None:
    path = config(home, agent, content)
    change("install", agent)
    path.write_text(path.read_text() + "\n")
    assert change("uninstall", agent).code == 0
    assert json.loads(path.read_text()) == json.loads(content)


@pytest.mark.parametrize(
    "command",
    [
        "timeout 5 clew hook run --agent gemini",
        "sh -c '/opt/bin/clew hook run --agent gemini; date'",
        "CLEW_DATA_DIR=/srv/clew clew hook run --agent gemini",
        "clew hook run --agent gemini --foreground",
        "sh -c 'clew hook run",
        "clew() { true; }\nclew hook run --agent gemini",
        "/opt/bin/clew --home /srv \\\n hook run --agent gemini",
        "clew --home '/srv/my home' --source=laptop --no-sync hook run --agent gemini",
        '"C:\\Program Files\\clew.exe" hook run --agent gemini --foreground',
        "python3 -m clew hook run --agent gemini",
        "if [ -t 0 ]; then nice -n 5 timeout -k 2s 10s ~/bin/clew hook run; fi",
        "env -i A='b c' uv run --frozen clew hook run --agent gemini",
        "cd /tmp&&clew hook run",
        'cmd /c ""C:\\My Files\\clew.exe" hook run"',
    ],
)
def test_a_line_of_the_user_that_runs_clew_is_reported_and_stays(command: str, home: Path) -> None:
    content = json.dumps({"hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": command}]}]}})
    path = config(home, "gemini", content)
    line = " ".join(command.split())
    for installed in (change("install", "gemini"), clew("hook", "install")):
        assert installed.code == 0
        assert "nothing to change" in installed.err and line in installed.err
    (row,) = (row for row in clew("hook", "status", "--json").json["agents"] if row["installed"])
    assert (row["command"], row["problem"]) == (command, None)
    for removed in (change("uninstall", "gemini"), clew("hook", "uninstall")):
        assert removed.code == 6
        assert line in removed.err and "remove it by hand" in removed.err
    assert path.read_text() == content


def test_a_line_of_the_user_that_runs_clew_stays_beside_the_hook_of_clew(home: Path) -> None:
    wrapped = {"hooks": [{"type": "command", "command": "timeout 5 clew hook run --agent gemini"}]}
    path = config(home, "gemini", json.dumps({"hooks": {"SessionEnd": [wrapped, old_hook("gemini")]}}))
    assert "timeout 5" in change("install", "gemini").err
    first, second = groups(path)
    assert first == wrapped and "/gone" not in second["hooks"][0]["command"]
    assert "timeout 5" in change("uninstall", "gemini").err
    assert groups(path) == [wrapped]


@every_agent
@pytest.mark.parametrize(
    "command",
    [
        "cd ~/src/clew && git hook run pre-commit",
        "clew sync; git hook run",
        "clew --no-sync | npm hook run",
        "git -C ~/src/clew hook run pre-commit",
        "sudo git -C '/my src/clew' hook run pre-commit",
        'git -C "clew" hook run pre-commit',
        "git --git-dir=~/src/clew hook run pre-commit",
        "sh -c 'git -C clew hook run'",
        "clew search hook run",
        "echo clew hook run",
    ],
)
def test_a_hook_of_the_user_that_only_names_clew_is_like_any_other(agent: str, command: str, home: Path) -> None:
    user_hook = {"hooks": [{"type": "command", "command": command}]}
    content = json.dumps({"hooks": {"SessionEnd": [user_hook]}})
    path = config(home, agent, content)
    assert change("uninstall", agent).code == 1
    installed = change("install", agent)
    assert installed.code == 0 and "clew did not add it" not in installed.err
    assert groups(path)[0] == user_hook
    assert groups(path)[1]["hooks"][0]["command"].endswith(f"hook run --agent {agent}")
    assert change("uninstall", agent).code == 0
    assert path.read_text() == content


@pytest.mark.parametrize("program", ["clew", "~/clew", "$HOME/clew"])
def test_a_program_on_the_path_or_in_the_home_is_not_gone(
    program: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = {"hooks": [{"type": "command", "command": f"{program} hook run --agent gemini"}]}
    config(home, "gemini", json.dumps({"hooks": {"SessionEnd": [hook]}}))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "its program is gone" in clew("hook", "status").out
    (tmp_path if program == "clew" else home).joinpath("clew").touch(mode=0o700)
    assert "its program is gone" not in clew("hook", "status").out


@every_agent
def test_a_dry_run_changes_nothing(agent: str, home: Path) -> None:
    path = config(home, agent, CONTENTS[0])
    assert "+++" in change("install", agent, "--dry-run").out
    assert path.read_text() == CONTENTS[0]
    change("install", agent)
    installed = path.read_text()
    assert "---" in change("uninstall", agent, "--dry-run").out
    assert path.read_text() == installed


@pytest.mark.parametrize("first", ["mcp", "hook"])
def test_a_server_and_a_hook_in_one_file_are_removed_in_any_order(first: str, home: Path) -> None:
    path = config(home, "gemini", CONTENTS[1])
    for command in ("mcp", "hook"):
        assert clew(command, "install", "--agent", "gemini").code == 0
    second = {"mcp": "hook", "hook": "mcp"}[first]
    clew(first, "uninstall", "--agent", "gemini")
    values = json.loads(path.read_text())
    assert ("mcpServers" in values, "hooks" in values) == (second == "mcp", second == "hook")
    clew(second, "uninstall", "--agent", "gemini")
    assert path.read_text() == CONTENTS[1]


@every_agent
def test_folders_that_clew_made_are_removed_with_the_last_file_in_them(agent: str, tmp_path: Path) -> None:
    for order in permutations(("mcp", "hook", "skill")):
        for verb in ("install", "uninstall"):
            for kind in order:
                assert clew(kind, verb, "--agent", agent, "--home", tmp_path).code == 0
        assert list(tmp_path.iterdir()) == []


@every_agent
def test_a_link_is_not_followed(agent: str, home: Path, tmp_path: Path) -> None:
    path = config(home, agent)
    target = tmp_path / "elsewhere"
    target.write_text("{}")
    path.symlink_to(target)
    assert change("install", agent).code != 0
    assert target.read_text() == "{}"


@pytest.mark.parametrize(
    "text", ["{ // comment\n}", '{"hooks": []}', '{"hooks": {"SessionEnd": {}}}', '{"a": 1, "a": 2}', "[]", "{"]
)
def test_what_cannot_be_changed_safely_is_refused(text: str, home: Path) -> None:
    path = config(home, "claude-code", text)
    refused = change("install", "claude-code")
    assert refused.code == 3
    assert "internal error" not in refused.err
    assert path.read_text() == text
    assert clew("hook", "status").code == 1


def test_without_an_agent_all_that_are_found_are_configured(home: Path) -> None:
    refused = clew("hook", "install")
    assert refused.code == 2
    assert "claude-code, codex, gemini" in refused.err
    for agent in ("claude-code", "gemini"):
        config(home, agent)
    assert clew("hook", "install").code == 0
    assert not (home / ".codex").exists()
    assert [row["agent"] for row in clew("hook", "status", "--json").json["agents"] if row["installed"]] == [
        "claude-code",
        "gemini",
    ]
    change("uninstall", "gemini")
    assert clew("hook", "uninstall").code == 0
    assert clew("hook", "uninstall").code == 1
    assert clew("hook", "status").code == 1


def test_an_agent_without_hooks_is_named(home: Path) -> None:
    refused = change("install", "pi")
    assert refused.code == 2
    assert "claude-code, codex, gemini" in refused.err


def test_the_user_is_told_to_approve_the_hook_in_codex(home: Path) -> None:
    assert "/hooks" in change("install", "codex").err
    assert "/hooks" in clew("hook", "status").err
    assert "/hooks" not in change("install", "claude-code").err


def test_the_configuration_of_a_named_home_is_changed(home: Path, tmp_path: Path) -> None:
    assert clew("--home", tmp_path, "hook", "install", "--agent", "gemini").code == 0
    assert (tmp_path / ".gemini" / "settings.json").is_file()
    assert clew("hook", "status", "--home", tmp_path).code == 0
    assert not (home / ".gemini").exists()


def test_folders_from_the_environment_are_used(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, agent, name in (
        ("CLAUDE_CONFIG_DIR", "claude-code", "settings.json"),
        ("CODEX_HOME", "codex", "hooks.json"),
    ):
        monkeypatch.setenv(variable, str(tmp_path))
        assert change("install", agent).code == 0
        assert (tmp_path / name).is_file()
