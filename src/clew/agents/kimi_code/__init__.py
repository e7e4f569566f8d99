"""Kimi Code: the sessions below ~/.kimi-code, with a journal for each agent of a session."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from clew.agents.backups import is_plain_file
from clew.agents.base import Agent, Claim, Header, SourceFile, source_at
from clew.agents.kimi_code import locate
from clew.agents.kimi_code.locate import AGENTS, MAIN_WIRE, STATE, WIRE
from clew.analysis.facts import Facts
from clew.analysis.titles import short_title
from clew.host import Host
from clew.io.compress import plain_name

_JOURNAL = re.compile(
    rb'"type"\s*:\s*"(?:metadata"[^\n]*"created_at"'
    rb"|context\.append_|turn\.prompt|profile\.bind|config\.update|runtime\.set_binding)"
)
_STATE = re.compile(rb'"agents"\s*:\s*\{\s*"')


class KimiCode(Agent):
    """The agent `kimi-code`."""

    id = locate.AGENT
    title = "Kimi Code"
    homepage = "https://github.com/MoonshotAI/kimi-code"
    package = __name__
    newest_tested_version = "2.1.0"
    session_files = (f"**/{AGENTS}/*/{WIRE}",)

    def roots(self, host: Host) -> Iterator[Path]:
        yield host.configured_folder("KIMI_CODE_HOME", ".kimi-code") / "sessions"

    def claims(self, path: Path, head: bytes) -> Claim:
        name = plain_name(path.name)
        if name == STATE:
            is_known = _STATE.search(head) is not None and (b'"homedir"' in head or (path.parent / MAIN_WIRE).exists())
            return Claim.YES if is_known else Claim.NO
        if not name.endswith(".jsonl"):
            return Claim.NO
        if _JOURNAL.search(head):
            return Claim.YES
        return Claim.MAYBE if not head.strip() and name == WIRE and path.parent.parent.name == AGENTS else Claim.NO

    def locate(self, path: Path) -> SourceFile:
        folder = locate.session_folder(path)
        if path.name == WIRE and locate.is_main(path) and is_plain_file(folder / STATE):
            path = folder / STATE
        has_journal = path.name == STATE and is_plain_file(path.parent / MAIN_WIRE)
        return source_at(self.id, path, parts=(MAIN_WIRE,) if has_journal else ())

    def session_id(self, source: SourceFile) -> str:
        return locate.session_id(source.path)

    def copies(self, source: SourceFile) -> Iterator[Path]:
        return (locate.agent_folder(source.path) / name for name in (locate.FILE_HISTORY, locate.BLOBS))

    def document_keys(self, head: bytes, name: str) -> tuple[str, ...] | None:
        from clew.agents.kimi_code.records import STATE_ARRAY

        return STATE_ARRAY if name == STATE else None

    def workspace_folder(self, source: SourceFile) -> str:
        return locate.session_folder(source.path).parent.name

    def session_title(self, source: SourceFile, facts: Facts) -> str | None:
        generated = facts.extra.get("generated_title")
        return facts.titles.get("title") or short_title(generated or facts.first_prompt)

    def target(self, header: Header) -> str:
        from clew.agents.kimi_code.encode import target

        return target(header)
