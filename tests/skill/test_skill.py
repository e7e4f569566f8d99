"""The skill of clew: its commands work, and agents get it and lose it without a trace."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from clew.host import data_dir
from clew.skill.install import skill_text
from tests.cli.running import COMMAND, Ran, clew

FILES = {
    "claude-code": ".claude/skills/clew/SKILL.md",
    "codex": ".codex/skills/clew/SKILL.md",
    "gemini": ".gemini/skills/clew/SKILL.md",
}
every_agent = pytest.mark.parametrize("agent", FILES)
RECORDED = "/home/ada/src/tidepool/tidepool/predict.py"
EXAMPLES = {
    "WORDS": "mean_level",
    "ERROR": "assert",
    "REF": "claude-code:71960fc3",
    "MESSAGE": "20",
    "PATH": "predict.py",
    "FILE:LINE": f"predict.py:6 --as {RECORDED}",
}
"""What the placeholders of the skill stand for in the demo home."""
MAX_BYTES = 24_000


def commands() -> list[str]:
    return [line for block in re.findall(r"```sh\n(.*?)```", skill_text(), re.DOTALL) for line in block.splitlines()]


def test_the_head_is_what_agents_accept() -> None:
    head, body = re.fullmatch(r"---\n(.*?)\n---\n\n(.*)", skill_text(), re.DOTALL).groups()  # type: ignore[union-attr]
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    assert fields.keys() == {"name", "description"}
    assert fields["name"] == "clew"
    # The limits of the specification of Agent Skills.
    assert len(fields["description"]) <= 1024
    assert len(body.splitlines()) < 500


def test_there_are_commands_and_all_are_masked() -> None:
    assert len(commands()) > 8
    for command in commands():
        assert "--json" not in command or "--redact secrets" in command
        assert "--limit" in command or "head -c" in command or command.startswith("clew blame")


@pytest.mark.parametrize("command", dict.fromkeys(commands()))
def test_a_command_of_the_skill_finds_something(command: str, synced_demo: Path, tmp_path: Path) -> None:
    file = clew("--home", synced_demo, "show", "71960#21", "--file", "tidepool/predict.py", "--unproved")
    (tmp_path / "predict.py").write_bytes(file.raw)
    for name, value in EXAMPLES.items():
        command = command.replace(name, value)
    command = command.replace("--here ", "")
    assert not re.search(r"\b[A-Z]{3,}\b", command)
    program, options = shlex.join(COMMAND), shlex.join(["--home", str(synced_demo)])
    line = re.sub(r"^clew ", f"{program} {options} ".replace("\\", r"\\"), command)
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=tmp_path, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    assert 0 < len(done.stdout) < MAX_BYTES


def change(verb: str, agent: str, *options: str | Path) -> Ran:
    return clew("skill", verb, "--agent", agent, *options)


def test_show_prints_the_skill() -> None:
    assert clew("skill", "show").out == skill_text()


@every_agent
def test_uninstall_leaves_nothing_behind(agent: str, home: Path) -> None:
    shown = change("install", agent)
    assert shown.code == 0
    assert "+name: clew" in shown.out
    path = home / FILES[agent]
    assert path.read_text() == skill_text()
    assert "nothing to change" in change("install", agent).err
    assert change("uninstall", agent).code == 0
    assert not (home / FILES[agent].partition("/")[0]).exists()
    assert change("uninstall", agent).code == 1


@every_agent
def test_other_skills_stay(agent: str, home: Path) -> None:
    other = (home / FILES[agent]).parent.parent / "other" / "SKILL.md"
    other.parent.mkdir(parents=True)
    other.write_text("other")
    change("install", agent)
    change("uninstall", agent)
    assert [path for path in other.parent.parent.rglob("*") if path.is_file()] == [other]
    assert not (home / FILES[agent]).parent.exists()


@every_agent
def test_a_dry_run_changes_nothing(agent: str, home: Path) -> None:
    assert "+++" in change("install", agent, "--dry-run").out
    assert not (home / FILES[agent]).exists()
    change("install", agent)
    assert "---" in change("uninstall", agent, "--dry-run").out
    assert (home / FILES[agent]).exists()


@every_agent
def test_a_changed_file_is_replaced_and_removed_only_with_force(agent: str, home: Path) -> None:
    path = home / FILES[agent]
    change("install", agent)
    path.write_text("mine")
    assert change("install", agent).code == 6
    assert change("uninstall", agent).code == 6
    assert path.read_text() == "mine"
    assert change("install", agent, "--force").code == 0
    assert path.read_text() == skill_text()
    assert change("uninstall", agent).code == 0
    assert path.read_text() == "mine"
    change("install", agent, "--force")
    path.write_text("again")
    assert change("uninstall", agent, "--force").code == 0
    assert path.read_text() == "mine"


@pytest.mark.parametrize("options", [(), ("--force",)])
def test_a_skill_that_clew_did_not_install_is_never_removed(options: tuple[str, ...], home: Path) -> None:
    path = home / FILES["claude-code"]
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    for words in (("--agent", "claude-code", *options), options):
        refused = clew("skill", "uninstall", *words)
        assert refused.code == 1
        assert "no skill of clew" in refused.err or "no agent has a skill of clew" in refused.err
        assert "--force" not in refused.err
    assert path.read_text() == "mine"


def test_the_text_of_clew_is_removed_but_not_folders_that_clew_did_not_make(home: Path) -> None:
    path = home / FILES["claude-code"]
    path.parent.mkdir(parents=True)
    path.write_text(skill_text())
    assert change("uninstall", "claude-code").code == 0
    assert not path.exists()
    assert path.parent.is_dir()


def test_folders_that_were_made_anew_since_stay(home: Path) -> None:
    path = home / FILES["claude-code"]
    change("install", "claude-code")
    shutil.rmtree(home / ".claude")
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    assert change("uninstall", "claude-code", "--force").code == 0
    assert path.parent.is_dir()


def test_a_skill_of_an_earlier_version_is_replaced(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home / FILES["gemini"]
    with monkeypatch.context() as patch:
        patch.setattr("clew.skill.install.skill_text", lambda: "old")
        change("install", "gemini")
    assert path.read_text() == "old"
    assert change("install", "gemini").code == 0
    assert path.read_text() == skill_text()
    change("uninstall", "gemini")
    assert not path.exists()


def test_a_link_is_not_followed(home: Path, tmp_path: Path) -> None:
    (home / ".claude").mkdir()
    (home / ".claude" / "skills").symlink_to(tmp_path)
    assert change("install", "claude-code").code == 4
    assert not list(tmp_path.iterdir())


def test_without_an_agent_all_that_are_found_get_the_skill(home: Path) -> None:
    assert clew("skill", "install").code == 2
    for folder in (".claude", ".gemini"):
        (home / folder).mkdir()
    assert clew("skill", "install").code == 0
    assert [agent for agent, name in FILES.items() if (home / name).exists()] == ["claude-code", "gemini"]
    assert clew("skill", "uninstall").code == 0
    assert clew("skill", "uninstall").code == 1
    assert not (data_dir() / "agent-config.json").read_text().strip("{} \n")


def test_an_agent_without_skills_is_named(home: Path) -> None:
    refused = change("install", "pi")
    assert refused.code == 2
    assert "claude-code, codex, gemini" in refused.err
