"""Sage Agent: every session below .sage/sessions. Its trajectories are not read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from clew.agents.backups import is_plain_file
from clew.agents.base import Agent, Claim, Header, SourceFile
from clew.agents.sage_agent import locate
from clew.analysis.facts import Facts
from clew.host import Host
from clew.io.compress import plain_name
from clew.io.paths import safe_relative
from clew.model.json import JSON

_CURRENT_FORM = re.compile(rb'"(?:context|toolResults|toolCalls|message)"\s*:\s*[\[{]')
_SNAPSHOT = re.compile(rb'"type"\s*:\s*"file_history_snapshot"')
_OLDER_FORM = re.compile(rb'"role"\s*:\s*"')


class SageAgent(Agent):
    """The agent `sage-agent`."""

    id = locate.AGENT
    title = "Sage Agent"
    homepage = "https://github.com/majiayu000/sage"
    package = __name__
    # A folder without metadata is invisible to the program itself, but not to us.
    session_files = (f"*/{locate.MESSAGES}",)
    file_changes_outside_calls = True

    def roots(self, host: Host) -> Iterator[Path]:
        yield host.home / ".sage" / "sessions"

    def discover(self, root: Path) -> Iterator[SourceFile]:
        return (source for source in super().discover(root) if is_plain_file(source.path))

    def copies(self, source: SourceFile) -> Iterator[Path]:
        return iter(locate.backup_folders(source))

    def claims(self, path: Path, head: bytes) -> Claim:
        name = plain_name(path.name)
        if _SNAPSHOT.search(head) and name.endswith(".jsonl"):
            return Claim.YES
        if name != locate.MESSAGES:
            return Claim.NO
        if _CURRENT_FORM.search(head) or _OLDER_FORM.search(head):
            return Claim.YES
        return Claim.MAYBE if not head.strip() or ".sage" in path.parts else Claim.NO

    def locate(self, path: Path) -> SourceFile:
        return locate.source_file(path)

    def session_id(self, source: SourceFile) -> str:
        return locate.session_id(source)

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        from clew.agents.sage_agent.metadata import session_fields

        return super().session(source, facts) | session_fields(source, facts)

    def target(self, header: Header) -> str:
        return f".sage/sessions/{safe_relative(header.session['id'])}/{locate.MESSAGES}"
