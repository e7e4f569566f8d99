"""Qwen Code: the transcripts below ~/.qwen/projects."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from clew.agents.backups import is_plain_file
from clew.agents.base import Agent, Claim, Header, SourceFile, file_stem, source_at
from clew.agents.derived_ids import is_uuid
from clew.agents.gemini_content import OPAQUE_PARTS
from clew.agents.native_records import first_value
from clew.agents.qwen_code import locate
from clew.agents.qwen_code.locate import AGENT_FILE, ARCHIVE, CHATS, PROJECTS, SUBAGENTS
from clew.analysis.facts import Facts
from clew.analysis.titles import short_title
from clew.host import Host
from clew.io.paths import safe_relative
from clew.model.json import JSON

_PROJECT = re.compile(r"-|[A-Za-z]--")
"""How the name of a project folder begins: every path does with a slash, or with a drive."""
_NOT_ALPHANUMERIC = re.compile(r"[^A-Za-z0-9]")
_RECORD = re.compile(rb'"sessionId"\s*:')
_MESSAGE = re.compile(rb'"message"\s*:\s*\{\s*"role"\s*:\s*"(?:user|model|system)"\s*,\s*"parts"\s*:')
_PAYLOAD = re.compile(rb'"(?:systemPayload|toolCallResult|usageMetadata)"\s*:')


class QwenCode(Agent):
    """The agent `qwen-code`."""

    id = "qwen-code"
    title = "Qwen Code"
    homepage = "https://github.com/QwenLM/qwen-code"
    package = __name__
    newest_tested_version = "0.24.4"
    session_files = (f"**/{CHATS}/*.jsonl", f"**/{CHATS}/{ARCHIVE}/*.jsonl", f"**/{SUBAGENTS}/*/*.jsonl")
    opaque_blocks = OPAQUE_PARTS

    def roots(self, host: Host) -> Iterator[Path]:
        """The place of the projects can be configured together with the settings, or alone."""
        homes = [host.env.get("QWEN_RUNTIME_DIR"), host.env.get("QWEN_HOME") or str(host.home / ".qwen")]
        for home in dict.fromkeys(filter(None, homes)):
            yield host.expand(home) / PROJECTS

    def discover(self, root: Path) -> Iterator[SourceFile]:
        return (source for source in super().discover(root) if locate.is_transcript_name(source.path.name))

    def claims(self, path: Path, head: bytes) -> Claim:
        if not locate.is_transcript_name(path.name):
            return Claim.NO
        if _RECORD.search(head) and (_MESSAGE.search(head) or _PAYLOAD.search(head)):
            return Claim.YES
        is_place = path.parent.name == CHATS or path.parent.parent.name == SUBAGENTS
        return Claim.MAYBE if is_place and ".qwen" in path.parts and not head.strip() else Claim.NO

    def locate(self, path: Path) -> SourceFile:
        meta = locate.meta_name(path)
        has_meta = locate.is_agent_file(path) and is_plain_file(path.parent / meta)
        return source_at(self.id, path, (meta,) if has_meta else ())

    def session_id(self, source: SourceFile) -> str:
        path, name = source.path, file_stem(source.path)
        is_named = locate.is_agent_file(path) or is_uuid(name)
        return name if is_named else first_value(path, "sessionId") or name

    def copies(self, source: SourceFile) -> Iterator[Path]:
        return locate.copies(source.path)

    def session(self, source: SourceFile, facts: Facts) -> dict[str, JSON]:
        from clew.agents.qwen_code.records import read_meta

        path, extra = source.path, facts.extra
        session = super().session(source, facts) | {"agent_id": None}
        own_name = None
        if locate.is_agent_file(path):
            own_name, above = file_stem(path).removeprefix(AGENT_FILE), read_meta(path).parentAgentId
            session["is_agent_session"], session["agent_id"] = True, extra.get("agent_id") or own_name
            session["parent_session_id"] = f"{AGENT_FILE}{locate.safe_id(above)}" if above else extra.get("claimed")
        subagents = []
        # Sub-agents of sub-agents lie in the same folder.
        for file in locate.subagent_files(path, session["id"]):
            meta = read_meta(file)
            if file != path and (locate.safe_id(meta.parentAgentId) if meta.parentAgentId else None) == own_name:
                agent_id = meta.agentId or file_stem(file).removeprefix(AGENT_FILE)
                subagents.append({"session_id": file_stem(file), "agent_id": agent_id, "tool_id": meta.toolUseId})
        if subagents:
            session["subagents"] = subagents
        if extension := {name: extra[name] for name in ("forked_from", "started_by") if name in extra}:
            session["extensions"] = {self.id: extension}
        return session

    def workspace_folder(self, source: SourceFile) -> str:
        return locate.project_path(source.path).name

    def session_title(self, source: SourceFile, facts: Facts) -> str | None:
        return facts.titles.get("custom_title") or short_title(facts.first_prompt)

    def target(self, header: Header) -> str:
        session = header.session
        project, name = f".qwen/{PROJECTS}/{_project_name(session)}", safe_relative(f"{session['id']}.jsonl")
        folder = header.recorded_path.parent
        parent = session.get("parent_session_id")
        if session.get("is_agent_session") and parent:
            # Sub-agents of sub-agents lie in the folder of the session that a person started.
            above = folder.name if parent.startswith(AGENT_FILE) and folder.parent.name == SUBAGENTS else parent
            return f"{project}/{SUBAGENTS}/{locate.safe_id(above)}/{name}"
        was_archived = folder.name == ARCHIVE and folder.parent.name == CHATS
        return f"{project}/{CHATS}/{ARCHIVE}/{name}" if was_archived else f"{project}/{CHATS}/{name}"


def _project_name(session: Mapping[str, JSON]) -> str:
    """The project folder that a session belongs in: the one it lies in, unless that is some folder of a person's."""
    named = session.get("workspace_encoded") or ""
    is_own = _PROJECT.match(named) or not session["workspace"]
    return safe_relative((named if is_own else _NOT_ALPHANUMERIC.sub("-", session["workspace"])) or "-")
