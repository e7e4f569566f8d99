"""Files put back: what a plan says, what is refused, what is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.agents import registry
from clew.agents.protected_paths import PROTECTED, agent_folders, is_protected
from clew.file_history.blame import Origin, Version, blame
from clew.file_history.restore import apply_plan, plan
from clew.host import Host
from clew.io.filesystem import SYSTEM, make_folder
from clew.store.change_journal import RESTORE_FOLDER as FOLDER_OF_RESTORES
from tests.conftest import ROOT
from tests.files.claude import FOLDER, Transcript
from tests.files.test_within import SPELLINGS, tree

HORN = f"{FOLDER}/horn.py"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


def _own(target: Path) -> Path:
    """clew's own folder, as it is while one is alone there."""
    make_folder(SYSTEM, target.parent / "own" / FOLDER_OF_RESTORES)
    return target.parent / "own"


def verdicts(said: Transcript, target: Path, message: int, **options: bool) -> dict[str, str]:
    history = said.write(target.parent / "home")
    answers = history.all_at(message)
    pairs = list(zip(answers, history.contents(answers), strict=True))
    steps = plan(pairs, target, FOLDER, allow_protected=options.get("allow_protected", False))
    return {step.path: step.verdict for step in steps}


def session(path: str = f"{FOLDER}/bell.py", text: str = "one\n") -> Transcript:
    said = Transcript()
    said.prompt()
    said.create(path, text)
    return said


def test_what_a_plan_says(target: Path) -> None:
    said = session()
    said.create(HORN, "toot\n")
    said.create(f"{FOLDER}/same", "same\n")
    last = said.read(f"{FOLDER}/part", "caf\ufffd")
    (target / "same").write_bytes(b"same\n")
    (target / "horn.py").write_bytes(b"other\n")
    (target / "part").write_bytes(b"x")
    expected = {"bell.py": "write", "horn.py": "conflict", "part": "unknown", "same": "same"}
    assert verdicts(said, target, last) == expected
    # At the first message none of them was there.
    assert verdicts(said, target, 1)["horn.py"] == "remove"
    assert verdicts(said, target, 1)["bell.py"] == "same"


@pytest.mark.parametrize("path", [path for path in SPELLINGS if path and "\0" not in path], ids=repr)
def test_R01_R02_R03_a_recorded_path_that_leads_elsewhere_is_never_written(target: Path, path: str) -> None:
    """Paths in records are made absolute first; then they must be below the project's folder, and plain."""
    said = session(path)
    for name, verdict in verdicts(said, target, said.index).items():
        assert verdict == "refused" or (target / name).resolve().is_relative_to(target.resolve())


def test_R04_a_link_in_the_target_is_refused(target: Path) -> None:
    (target / "bell.py").symlink_to(target.parent)
    said = session()
    assert verdicts(said, target, said.index) == {"bell.py": "refused"}


def test_R07_twins_in_one_restore_are_refused(target: Path) -> None:
    said = session(f"{FOLDER}/Bell.py")
    said.create(f"{FOLDER}/bell.py", "two\n")
    history = said.write(target.parent / "home")
    answers = history.all_at(said.index)
    steps = plan(list(zip(answers, history.contents(answers), strict=True)), target, FOLDER, allow_protected=False)
    assert {step.verdict for step in steps} == {"refused"}
    assert apply_plan(steps, target, target.parent / "rescue", _own(target)) == []
    assert tree(target) == {}


def test_R09_a_file_that_differs_is_kept_before_it_is_replaced(target: Path) -> None:
    (target / "bell.py").write_bytes(b"mine\n")
    said = session()
    history = said.write(target.parent / "home")
    answers = history.all_at(said.index)
    steps = plan(list(zip(answers, history.contents(answers), strict=True)), target, FOLDER, allow_protected=False)
    assert apply_plan(steps, target, target.parent / "rescue", _own(target)) == ["bell.py"]
    assert tree(target) == {"bell.py": b"one\n"}
    assert tree(target.parent / "rescue") == {"bell.py": b"mine\n"}


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit", ".git/config", "sub/.git/config", ".bashrc", ".zshrc", ".zshenv", ".profile",
        ".bash_profile", ".ssh/authorized_keys", ".claude/settings.json", ".claude/hooks/x.sh", ".codex/config.toml",
        ".gemini/settings.json", ".mcp.json", ".vscode/tasks.json", ".husky/pre-commit", ".envrc", ".GIT/hooks/x",
        ".gitmodules", ".gitconfig", ".npmrc", ".exrc", ".direnvrc", "sub/.dir-locals.el", ".config/git/config",
        ".tool-versions", ".local/bin/ls", "lib/sitecustomize.py", "usercustomize.py", "lib/site-packages/x.pth",
        ".zprofile", ".yarnrc.yml", "pip.conf", ".cargo/config.toml", ".bazelrc", ".nvim.lua", ".gdbinit",
        ".githooks/x",
        ".devcontainer/devcontainer.json", ".config/systemd/user/x.service", ".config/autostart/x.desktop",
        "Library/LaunchAgents/x.plist", "library/launchagents/x.plist", ".config/fish/conf.d/x.fish", ".gnupg/gpg.conf",
        ".claude/worktrees/tide/.claude/settings.json", ".claude/worktrees/.git/hooks/pre-commit",
        ".claude/worktrees/.git/config", ".sage/worktrees/.vscode/tasks.json", ".codex/worktrees/.bashrc/x",
        ".bashrc.d/x.sh", ".oh-my-zsh/oh-my-zsh.sh", ".p10k.zsh", ".fzf.bash", ".nvm/nvm.sh", ".asdf/asdf.sh",
        ".sdkman/bin/sdkman-init.sh", ".rbenv/shims/ruby", ".config/plasma-workspace/env/x.sh",
        ".config/openbox/autostart", ".config/kitty/kitty.conf", ".xmonad/xmonad.hs", ".vnc/xstartup",
        ".local/share/nvim/site/plugin/x.lua", ".config/Code/User/settings.json", ".vscode-server/x",
        ".helix/config.toml", ".lazy.lua", "_exrc", ".wezterm.lua", ".hammerspoon/init.lua", "mise.local.toml",
        ".mise.local.toml", ".mise/config.toml", "lefthook.yml", ".lefthook-local.yaml", ".shadowenv.d/x.lisp",
        "bunfig.toml", ".pnpmfile.cjs", ".pnpmfile.mjs", ".gitconfig-work", ".git-templates/hooks/x", ".cursorrules",
        ".roo/mcp.json", ".amazonq/mcp.json", ".crush.json", "opencode.json", ".config/irb/irbrc", ".config/npm/npmrc",
        ".config/curlrc", ".config/readline/inputrc", ".local/lib/python3.12/site-packages/json/__init__.py",
    ],
)  # fmt: skip
def test_R13_what_programs_trust_needs_an_extra_word(target: Path, path: str) -> None:
    said = session(f"{FOLDER}/{path}")
    assert is_protected(path)
    assert verdicts(said, target, said.index) == {path: "protected"}
    assert verdicts(said, target, said.index, allow_protected=True) == {path: "write"}


@pytest.mark.parametrize(
    "path",
    [
        ".g\u200cit/hooks/x", "sub/.gi\u200dt\u202e/config", "\ufeff.git/config", ".g\u0131t/config", ".\u017fsh/rc",
        "git~1/hooks/x", "GIT~1/config", "gi7eba~1", "CLAUDE~1.JSO", ".git /config", ".git./config", ".git. ./config",
        ".git::$INDEX_ALLOCATION/config", ".bashrc::$DATA", "sub\\.git\\config", ".bashrc/..namedfork/data",
        "\uff0egit/config", ".git/worktrees/tide/gitdir", ".claude/worktrees/../settings.json",
        ".claude/worktrees/.. /settings.json", ".claude/worktrees/x", ".claude/worktrees/.GIT /config",
    ],
    ids=ascii,
)  # fmt: skip
def test_R13_other_spellings_of_a_trusted_file_need_it_too(path: str) -> None:
    """What some file system holds for the same name."""
    assert is_protected(path)


@pytest.mark.parametrize(
    "path",
    [
        "bell.py", "git/config", "src/profile", "docs/.gitignore", "bashrc", "a/ssh/x", "package.json", "Makefile",
        "AGENTS.md", "CLAUDE.md", ".github/workflows/ci.yml", "weights/model.pth", "bin/run", "config", "x.git/config",
        "bell.py.~1~", "bell~", "long-name~1.txt", ".envoy", ".claude/worktrees/tide/src/bell.py", "pyproject.toml",
        ".editorconfig", ".nvmrc", ".eslintrc.js", "conftest.py",
        "/home/ada/.claude/worktrees/tide/src/bell.py", "mise/tasks/x", "src/opencode.json.md",
        "/home/ada/.local/share/opencode/worktree/a/tide/bell.py", "lib/site-packages/x.py",
    ],
)  # fmt: skip
def test_R13_other_files_do_not(path: str) -> None:
    assert not is_protected(path)


@pytest.mark.parametrize("name", registry.names())
def test_R13_the_folders_of_every_agent_do(name: str) -> None:
    home = Path("/home/ada")
    roots = list(registry.get(name).roots(Host.at(home)))
    assert [str(root) for root in roots if not is_protected(f"{root}/settings.json")] == []


@pytest.mark.parametrize(
    "path",
    [
        ".cline/data/settings/providers.json", ".clinerules/style.md", ".kimi-code/config.toml", ".goosehints",
        ".config/goose/config.yaml", ".config/opencode/opencode.json", ".config/kilo/kilo.json", ".kilocode/mcp.json",
        ".vibe/config.toml", ".continue/config.yaml", ".config/Cursor/User/settings.json", ".roomodes",
        "Library/Application Support/VSCodium/User/settings.json", ".local/share/opencode/auth.json",
    ],
)  # fmt: skip
def test_R13_the_settings_of_agents_do(path: str) -> None:
    assert is_protected(f"/home/ada/{path}")


def test_R13_folders_that_variables_name_do() -> None:
    variables = {"CLAUDE_CONFIG_DIR": "/home/ada/c", "VIBE_HOME": "/data/vibe", "XDG_DATA_HOME": "/data/share"}
    assert {"home/ada/c", "data/vibe", "data/share/goose", "data/share/opencode"} <= set(
        agent_folders(Host(Path("/home/ada"), variables))
    )


def test_R13_folders_of_the_home_that_variables_name_do() -> None:
    variables = {"CODEX_HOME": "~/c", "PI_CODING_AGENT_DIR": "~nobodyhere/pi"}
    assert "home/ada/c" in agent_folders(Host(Path("/home/ada"), variables))


@pytest.mark.parametrize("name", [".config/git", ".git/hooks", ".local/bin"])
def test_R13_a_folder_that_is_trusted_itself_needs_it_too(target: Path, name: str) -> None:
    """A session that claims to have worked in such a folder names its files by harmless relative paths."""
    said = session(f"{FOLDER}/config")
    folder = target / name
    folder.mkdir(parents=True)
    assert verdicts(said, folder, said.index) == {"config": "protected"}
    assert verdicts(said, folder, said.index, allow_protected=True) == {"config": "write"}


def test_R13_the_documentation_lists_what_is_protected() -> None:
    text = (ROOT / "docs" / "reference" / "protected-files.md").read_text()
    assert [entry for group in PROTECTED.values() for entry in group if f"`{entry}`" not in text] == []
    names = {folder.rpartition("/")[2] for folder in agent_folders(Host.at(Path("/home/ada")))}
    assert sorted(name for name in names if f"`{name}`" not in text) == []


def test_R14_without_a_recorded_folder_nothing_is_put_anywhere(target: Path) -> None:
    said = session()
    history = said.write(target.parent / "home")
    answers = history.all_at(said.index)
    pairs = list(zip(answers, history.contents(answers), strict=True))
    (step,) = plan(pairs, target, "", allow_protected=False)
    assert step.verdict == "refused" and tree(target) == {}


def test_what_something_may_have_changed_since_is_not_put_back_unasked(target: Path) -> None:
    said = session()
    last = said.shell("make")
    assert verdicts(said, target, last) == {"bell.py": "unproved"}


def origin(message: int) -> Origin:
    return Origin("s", "claude-code", message, None, None, "exact")


def test_each_line_goes_to_the_message_that_wrote_it() -> None:
    versions = [
        Version(origin(1), b"", b"one\ntwo\n"),
        Version(origin(2), b"one\ntwo\n", b"one\nTWO\nthree\n"),
        Version(origin(3), b"one\nTWO\nthree\n", b"zero\none\nTWO\nthree\n"),
    ]
    found = [line.origin.message if line.origin else None for line in blame(b"zero\none\nTWO\nTHREE\n", versions)]
    assert found == [3, 1, 2, None]


def test_what_was_there_before_and_what_came_from_outside_is_unknown() -> None:
    versions = [
        Version(origin(1), b"old\n", b"old\nnew\n"),
        Version(None, b"old\nnew\nfrom outside\n", None),
        Version(origin(3), b"old\nnew\nfrom outside\n", b"old\nnew\nfrom outside\nlast\n"),
    ]
    lines = blame(b"old\r\nnew\r\nfrom outside\r\nlast\r\n", versions)
    assert [line.origin.message if line.origin else None for line in lines] == [None, 1, None, 3]
    assert [line.origin for line in blame(b"a\n", [])] == [None]


def test_a_version_that_is_not_known_gives_no_lines() -> None:
    versions = [
        Version(origin(1), b"", b"one\n"),
        Version(origin(2), None, None),
        Version(origin(3), None, b"one\ntwo\n"),
    ]
    lines = blame(b"one\ntwo\n", versions)
    assert [line.origin.message if line.origin else None for line in lines] == [1, 3]
