"""Files that programs run or obey without being asked to: restoring one needs a confirmation.

Protected is what takes effect when a folder is opened or entered, at login, or at the start of an unrelated program,
and the folders of all agents. What only a build runs (`package.json`, `Makefile`) is not: agents edit it all the time.
"""

from __future__ import annotations

import itertools
import os
import re
import unicodedata
from functools import cache
from pathlib import Path, PurePath

from clew.agents import registry
from clew.host import Host

PROTECTED: dict[str, tuple[str, ...]] = {
    "version control": (
        ".git", ".gitconfig", ".gitmodules", ".gitattributes", ".git-credentials", ".githooks", ".husky",
        ".pre-commit-config.yaml", ".config/git", ".hg", ".hgrc", ".svn", ".jj", ".config/jj", ".gitconfig-*",
        ".git-templates", "lefthook*.y*ml", ".lefthook*.y*ml",
    ),
    "shells": (
        ".profile", ".login", ".logout", ".shrc", ".bashrc", ".bash_*", ".zsh*", ".zprofile", ".zlogin", ".zlogout",
        ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".xonshrc", ".inputrc", ".hushlogin", "config.fish", ".config/fish",
        ".config/zsh", ".config/nushell", ".config/powershell", "*profile.ps1", ".bashrc.d", ".oh-my-zsh", ".p10k.zsh",
        ".fzf.bash", ".fzf.zsh", ".config/xonsh", ".config/elvish", ".config/readline", ".local/share/bash-completion",
    ),
    "environments of folders": (
        ".env", ".envrc", ".direnvrc", ".config/direnv", ".autoenv*", ".rvmrc", ".tool-versions", ".mise.toml",
        "mise.toml", ".config/mise", ".devcontainer", ".devcontainer.json", "mise.*.toml", ".mise.*.toml", ".mise",
        ".shadowenv.d", ".nvm", ".asdf", ".sdkman",
    ),
    "login and desktop": (
        ".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".xserverrc", ".pam_environment", ".config/environment.d",
        ".config/autostart", ".config/autostart-scripts", ".config/systemd", ".local/share/systemd",
        ".local/share/applications", ".local/share/dbus-1", ".config/i3", ".config/sway", ".config/hypr",
        "Library/LaunchAgents", "Library/LaunchDaemons", "Start Menu/Programs/Startup", "desktop.ini", "autorun.inf",
        ".config/plasma-workspace/env", ".config/openbox", ".config/awesome", ".config/bspwm", ".config/qtile",
        ".config/river", ".config/labwc", ".config/niri", ".config/lxsession", ".xmonad", ".vnc",
        ".local/share/gnome-shell", ".hammerspoon",
    ),
    "programs on the path": (
        ".local/bin", ".cargo/bin", ".bun/bin", ".deno/bin", "go/bin", ".npm-global", ".*env/shims",
    ),
    "editors": (
        ".vimrc", ".gvimrc", "_vimrc", "_gvimrc", ".exrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".vim", ".config/nvim",
        ".ideavimrc", ".emacs", ".emacs.el", ".emacs.d", ".config/emacs", "init.el", "early-init.el", ".dir-locals.el",
        ".dir-locals-2.el", ".spacemacs", ".doom.d", ".vscode", "*.code-workspace", ".idea", ".zed", ".fleet", ".vs",
        "_exrc", ".lazy.lua", ".local/share/nvim", ".config/Code", ".vscode-server", ".helix", ".config/helix",
        ".config/zed",
    ),
    "agents": (
        ".claude.json", ".cursor", ".mcp.json", ".aider.conf.yml", ".windsurf", ".windsurfrules", ".opencode", ".kiro",
        ".config/clew", ".cursorrules", ".clinerules", ".roo", ".roomodes", ".roorules*", ".kilo", ".kilocode",
        ".kilocodemodes", ".kilocoderules*", ".goose", ".goosehints", ".amazonq", ".crush.json", "opencode.json",
        "opencode.jsonc", "kilo.json", "kilo.jsonc",
    ),
    "interpreters and debuggers": (
        "sitecustomize.py", "usercustomize.py", "site-packages/*.pth", "dist-packages/*.pth", ".pythonrc*", ".pdbrc*",
        ".ipython", ".jupyter", ".irbrc", ".pryrc", ".rprofile", ".renviron", ".ghci", ".ocamlinit", ".octaverc",
        ".gdbinit", ".gdbearlyinit", ".config/gdb", ".lldbinit*", ".sqliterc", ".psqlrc", ".my.cnf",
        ".local/lib/python*/site-packages", ".config/irb", ".config/pry", ".config/psql", ".config/sqlite3",
    ),
    "package managers and builds": (
        ".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/plugins", ".yarn/releases", ".pnpmfile.cjs", ".pypirc", "pip.conf",
        "pip.ini", ".pip", ".condarc", ".cargo/config", ".cargo/config.toml", ".cargo/env*", ".cargo/credentials*",
        ".bazelrc", ".gemrc", ".bundle/config", ".mavenrc", ".mvn", ".gradle/init*", ".gradle/gradle.properties",
        ".pnpmfile.mjs", ".config/npm", ".config/pnpm", "bunfig.toml",
    ),
    "keys and logins": (
        ".ssh", "authorized_keys", ".rhosts", ".shosts", ".gnupg", ".netrc", "_netrc", ".pgpass", ".password-store",
        ".aws", ".azure", ".kube", ".docker", ".config/gh", ".config/gcloud", ".terraformrc",
    ),
    "others": (
        ".tmux.conf", ".config/tmux", ".screenrc", ".curlrc", ".wgetrc", ".mailcap", ".forward", ".procmailrc",
        ".config/curlrc", ".wezterm.lua", ".config/wezterm", ".config/kitty",
    ),
}  # fmt: skip
"""Names of files and folders, at any depth; a folder includes everything in it. `*` matches any characters.

The folders in which agents keep their sessions are added by `agent_folders`.
"""

_APPLICATION_FOLDERS = (".config", ".local/share", "Library/Application Support", "AppData/Roaming")
"""Folders of a home with a folder for each application."""
_ANY_HOME = Path("/any-home")

_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
)
"""Code points that some file systems leave out when they compare names: HFS+ finds `.git` by `.g\u200cit` too."""
_SHORT_NAME = re.compile(r"(?=[^.]{3,8}(?:\.|$))[^.~]+~[0-9]+(?:\.[^.]{0,3})?")
"""A name that Windows makes for another one: `GIT~1` is `.git`. The long name cannot be derived from it."""
_WORKTREE = re.compile(
    r"/\.(?:claude|codex|cursor|gemini|sage)/worktrees(?=/[^/]+/)"
    r"|/\.local/share/opencode/worktree/[^/]+(?=/[^/]+/)"
)
"""Where agents check out copies of a project, which are ordinary files. The copy's name is not part of the match."""


def is_protected(path: str) -> bool:
    """True for a path on which, or below which, lies what programs run or obey without being asked to."""
    parts = [_folded(part) for part in re.split(r"[/\\]", path)]
    if any(_SHORT_NAME.fullmatch(part) for part in parts):
        return True
    folded = "/" + "/".join(parts)
    # A name of dots and spaces alone leads elsewhere.
    if all(part.strip(". ") or not part for part in parts):
        folded = _WORKTREE.sub("", folded)
    return _pattern().search(folded) is not None


def _folded(name: str) -> str:
    """The same for all names that are one file on some system."""
    name = _IGNORABLE.sub("", name.partition(":")[0])  # on Windows, a colon begins the name of a part of the file
    # Letters such as a dotless i have a capital, and by it a small letter, that is another one's.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).upper().casefold())
    # A name of dots alone is left: it leads elsewhere.
    return folded.rstrip(". ") or folded


@cache
def _pattern() -> re.Pattern[str]:
    listed = itertools.chain(*PROTECTED.values(), agent_folders(Host.local()))
    entries = ["/".join(map(_folded, entry.split("/"))) for entry in listed]
    # A file or link in the place of a protected folder decides what that folder holds, so it counts as well.
    choices = "|".join(re.escape(entry).replace(r"\*", "[^/]*") for entry in entries)
    return re.compile(rf"/(?:{choices})(?:/|\Z)")


def agent_folders(host: Host) -> list[str]:
    """The folders of agents, with sessions and settings: in any home, and those that `host` configures."""
    found: set[str] = set()
    for agent in registry.load_all():
        defaults = list(agent.roots(Host.at(_ANY_HOME)))
        split = [_split_root(root.relative_to(_ANY_HOME)) for root in defaults if root.is_relative_to(_ANY_HOME)]
        for folder, _ in split:
            above, _, name = folder.rpartition("/")
            # An application has folders of the same name for data and settings: `.local/share/goose`, `.config/goose`.
            found |= {f"{each}/{name}" for each in _APPLICATION_FOLDERS} if above else {folder}
        for root in set(agent.roots(host)) - set(agent.roots(Host.at(host.home))):
            path = root.resolve().as_posix()
            ends = [f"/{below}" for _, below in split if below and path.endswith(f"/{below}")]
            found.add(path.removesuffix(min(ends, key=len, default="")).strip("/"))
    return sorted(found - {""})


def _split_root(path: PurePath) -> tuple[str, str]:
    """The folder of an agent below a home, and the path of its sessions below that folder."""
    text = path.as_posix()
    above = next((folder for folder in _APPLICATION_FOLDERS if text.startswith(f"{folder}/")), "")
    depth = above.count("/") + 2 if above else 1
    return "/".join(path.parts[:depth]), "/".join(path.parts[depth:])


def leads_out(path: str, target: bytes | None, root: str = "") -> bool:
    """True for a link at a path below the root that leads out of it, or to what programs trust; None is no link."""
    if target is None:
        return False
    if target.startswith(b"/"):
        return True
    names = [name for name in target.split(b"/") if name not in (b"", b".")]
    # A name before `..` may be a link, and then what is above it lies elsewhere.
    if b".." in itertools.dropwhile(lambda name: name == b"..", names):
        return True
    inner = os.path.normpath(os.path.join(os.path.dirname(path), os.fsdecode(target)))  # noqa: PTH118, PTH120
    return inner.split("/")[0] == ".." or is_protected(f"{root}/{inner}")
