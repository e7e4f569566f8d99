"""Files of agents that clew cannot change: what is said about them, and what becomes of other agents."""

import errno
import json
from pathlib import Path

import pytest

from tests.cli.running import clew

COMMENTED = '{\n  // mine\n  "theme": "dark"\n}\n'
SETTINGS = {"claude-code": ".claude/settings.json", "gemini": ".gemini/settings.json"}


def settings(home: Path, agent: str, content: str = "{}") -> Path:
    path = home / SETTINGS[agent]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def test_one_unusable_file_does_not_keep_others_from_being_changed(home: Path) -> None:
    broken, usable = settings(home, "claude-code", COMMENTED), settings(home, "gemini")
    installed = clew("hook", "install")
    assert installed.code == 3
    assert str(broken) in installed.err and "may have comments" in installed.err
    assert "hook run --agent gemini" in usable.read_text()
    assert broken.read_text() == COMMENTED
    removed = clew("hook", "uninstall")
    assert removed.code == 3
    assert "remove that by hand" in removed.err and "add" not in removed.err
    assert usable.read_text() == "{}"
    assert clew("hook", "uninstall").code == 3


def test_one_changed_skill_does_not_keep_others_from_being_changed(home: Path) -> None:
    for folder in (".claude", ".gemini"):
        (home / folder).mkdir()
    clew("skill", "install")
    changed, other = (home / folder / "skills/clew/SKILL.md" for folder in (".claude", ".gemini"))
    changed.write_text("mine")
    other.unlink()
    assert clew("skill", "install").code == 6
    assert other.exists()
    assert clew("skill", "uninstall").code == 6
    assert not other.exists()
    assert changed.read_text() == "mine"


@pytest.mark.parametrize(("command", "title"), [("hook", "hook of clew"), ("mcp", "server 'clew'")])
def test_uninstall_says_what_became_of_the_file(command: str, title: str, home: Path) -> None:
    words = ("--agent", "gemini")

    def uninstall() -> str:
        return clew(command, "uninstall", *words).err.strip()

    path = home / SETTINGS["gemini"]
    clew(command, "install", *words)
    assert uninstall() == f"{path}: file removed"
    settings(home, "gemini", '{"theme": "dark"}')
    clew(command, "install", *words)
    assert uninstall() == f"{path}: restored, without the {title}"
    clew(command, "install", *words)
    path.write_text(path.read_text().replace("{", '{"later": 1,', 1))
    assert uninstall() == f"{path}: {title} removed"


def test_uninstall_says_that_another_skill_was_restored(home: Path) -> None:
    path = home / ".gemini/skills/clew/SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    clew("skill", "install", "--agent", "gemini", "--force")
    assert clew("skill", "uninstall", "--agent", "gemini").err == f"{path}: restored, without the skill of clew\n"


@pytest.mark.parametrize(
    ("words", "file", "added"),
    [
        (("hook", "--agent", "gemini"), ".gemini/settings.json", '{"hooks": {"SessionEnd": [{"hooks": '),
        (("mcp", "--agent", "gemini"), ".gemini/settings.json", '{"mcpServers": {"clew": {'),
        (("mcp", "--agent", "codex"), ".codex/config.toml", "[mcp_servers.clew] with command = "),
        (("skill", "--agent", "codex"), ".codex/skills/clew/SKILL.md", "`clew skill show`"),
    ],
)
@pytest.mark.parametrize("is_folder", [False, True])
def test_a_link_is_called_a_link(
    words: tuple[str, ...], file: str, added: str, is_folder: bool, home: Path, tmp_path: Path
) -> None:
    path = home / file
    link = home / file.partition("/")[0] if is_folder else path
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(tmp_path, target_is_directory=True)
    command, *options = words
    installed, removed = clew(command, "install", *options), clew(command, "uninstall", *options)
    assert (installed.code, removed.code) == (4, 4)
    for shown in (installed.err, removed.err):
        assert f"{link} is a link" in shown
        assert str(path) in shown
        assert "by hand" in shown
    assert added in installed.err
    assert "add" not in removed.err
    if command == "hook":
        assert f"{link} is a link" in json.dumps(clew("hook", "status", "--json").json)


def test_an_error_of_the_system_names_the_whole_path(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = settings(home, "gemini")

    def deny(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", ".clew-0-1.tmp")

    for name in ("_write", "_open_folder"):
        with monkeypatch.context() as patch:
            patch.setattr(f"clew.io.safe_write.{name}", deny)
            refused = clew("hook", "install", "--agent", "gemini")
            assert refused.code == 3
            assert refused.err == f"clew: {path}: Permission denied\n"
            if name == "_open_folder":
                rows = clew("hook", "status", "--json").json["agents"]
                assert f"{path}: Permission denied" in [row["problem"] for row in rows]
    assert path.read_text() == "{}"


@pytest.mark.parametrize(
    ("command", "agent", "file", "content"),
    [
        ("hook", "claude-code", ".claude/settings.json", '\ufeff{\n  "theme": "dark"\n}\n'),
        ("hook", "claude-code", ".claude/settings.json", "\ufeff"),
        ("mcp", "gemini", ".gemini/settings.json", '\ufeff{"theme": "dark"}'),
        ("mcp", "codex", ".codex/config.toml", '\ufeffmodel = "x"\n'),
    ],
)
def test_a_byte_order_mark_stays(command: str, agent: str, file: str, content: str, home: Path) -> None:
    path = home / file
    path.parent.mkdir()
    path.write_text(content, encoding="utf-8")
    words = ("--agent", agent)
    assert clew(command, "install", *words).code == 0
    installed = path.read_text(encoding="utf-8")
    assert installed.startswith(content.rstrip("\n}")) and len(installed) > len(content)
    assert "nothing to change" in clew(command, "install", *words).err
    path.write_text(f"{installed}\n", encoding="utf-8")
    assert clew(command, "uninstall", *words).code == 0
    assert path.read_text(encoding="utf-8").startswith(content.rstrip("\n}"))
    clew(command, "install", *words)
    assert clew(command, "uninstall", *words).code == 0


@pytest.mark.parametrize(
    ("words", "file", "content", "shown"),
    [
        (("hook", "gemini"), ".gemini/settings.json", '{\n  "a": "x\x9b31m\x7f"\n}\n', '"x\\x9b31m␡"'),
        (("mcp", "gemini"), ".gemini/settings.json", '{\n  "a": "x\u2028\u202ey"\n}\n', '"x\\u2028\\u202ey"'),
        (("hook", "gemini"), ".gemini/settings.json", '{"a": "x"}\r\n', '-{"a": "x"}\n'),
        (("mcp", "codex"), ".codex/config.toml", 'a = "x\x9b31m"\n', '"x\\x9b31m"'),
        (("skill", "gemini", "--force"), ".gemini/skills/clew/SKILL.md", "x\x1b[31m\x0cy\n", "x␛[31m␌y"),
    ],
)
@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_control_characters_are_escaped_in_the_change(
    words: tuple[str, ...], file: str, content: str, shown: str, options: tuple[str, ...], home: Path
) -> None:
    path = home / file
    path.parent.mkdir(parents=True)
    path.write_bytes(content.encode())
    command, agent, *more = words
    installed = clew(command, "install", "--agent", agent, *more, *options)
    assert installed.code == 0
    assert shown in installed.out
    assert not set(installed.out) & set("\r␍\x1b\x9b\x7f\u202e")


@pytest.mark.parametrize("content", ['{"a": 1', '{"a": 1, "a": 2}', "{'a': 1}"])
def test_comments_are_suspected_only_where_they_are_likely(content: str, home: Path) -> None:
    settings(home, "gemini", content)
    refused = clew("hook", "install", "--agent", "gemini")
    assert refused.code == 3
    assert "comment" not in refused.err and "by hand" in refused.err
