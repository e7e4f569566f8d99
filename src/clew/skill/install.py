"""The skill as a file of an agent."""

from __future__ import annotations

from importlib.resources import files

from clew.agents.base import Agent
from clew.agents.extension_points import ConfigFile
from clew.config_file_edits import Addition, is_unchanged, load_backup
from clew.errors import WouldLose
from clew.host import Host

_FILE = "skills/clew/SKILL.md"


def skill_text() -> str:
    """The SKILL.md of this version of clew."""
    return files("clew.skill").joinpath("SKILL.md").read_text(encoding="utf-8")


def skill_addition(agent: Agent, host: Host, *, force: bool = False) -> SkillAddition | None:
    """The skill for an agent; None for an agent without skills."""
    file = agent.config_file(host, _FILE)
    return SkillAddition(file, force=force) if file is not None else None


class SkillAddition(Addition):
    """The SKILL.md of clew. The file is clew's own; one that was changed is replaced only with `force`."""

    kind = "skill"
    title = "skill of clew"

    def __init__(self, file: ConfigFile, *, force: bool) -> None:
        super().__init__(file)
        self._force = force

    def is_installed_in(self, text: str | None) -> bool:
        backup = load_backup(self)
        return text == skill_text() or (backup is not None and is_unchanged(backup, text))

    def add(self, text: str | None) -> str:
        if text is not None and not self.is_installed_in(text) and not self._force:
            raise WouldLose(f"{self.file.path} is not as clew wrote it; use --force to replace it")
        return skill_text()

    def remove(self, text: str, content_before_install: str | None) -> str | None:
        backup, is_own = load_backup(self), self.is_installed_in(text)
        if backup is None and not is_own:
            raise self.not_installed_error()
        if not is_own and not self._force:
            raise WouldLose(f"{self.file.path} is not as clew wrote it; use --force to remove it")
        return content_before_install

    def manual_instructions(self) -> str:
        return "add the skill by hand: `clew skill show` prints it"
