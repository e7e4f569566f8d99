"""Files that programs run or trust without asking: only a person who was told so may have them put back."""

from __future__ import annotations

import os
import re

_PROTECTED_FOLDERS = frozenset({".git", ".hg", ".svn", ".ssh", ".gnupg", ".husky", ".aws", ".kube", ".docker"})
_SETTINGS_FOLDERS = frozenset(
    {".claude", ".codex", ".gemini", ".sage", ".cursor", ".vscode", ".idea", ".github", ".devcontainer", ".zed"}
)
_PROTECTED_NAMES = re.compile(
    r"\.(?:bash|zsh|k|c|tc)?(?:rc|shrc|env|profile|login|logout)|\.bash_\w+|\.zsh\w+|\.profile|\.envrc|\.netrc|\.npmrc"
    r"|\.pypirc|\.gitconfig|\.gitmodules|\.gitattributes|\.mcp\.json|\.claude\.json|\.pre-commit-config\.yaml"
    r"|config\.fish|authorized_keys|\.vimrc|\.emacs|init\.el|\.tmux\.conf|\.inputrc|\.xprofile|\.xinitrc",
    re.IGNORECASE,
)


def is_protected(path: str) -> bool:
    """True for what programs run or trust without asking: hooks, settings, keys, what shells read."""
    parts = path.split("/")
    # The last one too: a file or link in the place of such a folder says where the trusted one is.
    names = {part.casefold() for part in parts}
    if names & _PROTECTED_FOLDERS or names & _SETTINGS_FOLDERS:
        return True
    return _PROTECTED_NAMES.fullmatch(parts[-1]) is not None


def leads_out(path: str, target: bytes | None) -> bool:
    """True for a link at a path below a folder that leads out of it, or to what programs trust; None is no link."""
    if target is None:
        return False
    if target.startswith(b"/"):
        return True
    inner = os.path.normpath(os.path.join(os.path.dirname(path), os.fsdecode(target)))  # noqa: PTH118, PTH120
    return inner.split("/")[0] == ".." or is_protected(inner)
