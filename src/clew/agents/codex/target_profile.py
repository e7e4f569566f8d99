"""What Codex can hold of other agents' sessions, what its records say beside messages, and how a session is resumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import to_builtins

from clew.agents.base import Unit
from clew.agents.codex import locate
from clew.agents.codex.encode import ID_KEYS, tool_output
from clew.agents.codex.history import read_with_history
from clew.agents.codex.items import SPOKEN, blocks_of, exit_status, is_injected_item, role_of, texts_of
from clew.agents.codex.records import TEXT_TYPES, Payload
from clew.agents.target_profile import Capacity, Compaction, Header, RecordText, TargetProfile
from clew.agents.tools import Tool, command_text, todos_from, todos_into
from clew.io.codec import dumps
from clew.io.compress import open_source
from clew.io.typed_records import decode_leniently
from clew.model.json import JSON

_HEAD_BYTES = 200
_ENCRYPTED_SUMMARIES = ("compaction", "compaction_summary", "context_compaction")
_Payload = Mapping[str, JSON]
_ROLES = ("user", "assistant", "developer", "system")
_IN_CODE = "exec-"
"""How the ids of calls begin that a script of the model made."""
_CWD = {"cwd": "workdir"}
TOOLS = (
    Tool("shell", "exec_command", {"command": "cmd", **_CWD}),
    Tool("shell", "shell_command", _CWD),
    Tool("shell", "shell", _CWD, read=command_text),
    Tool("shell", "local_shell", {"cwd": "working_directory"}, read=command_text),
    Tool(
        "todos",
        "update_plan",
        {"todos": "plan"},
        read=todos_from({"step": "content"}),
        write=todos_into({"content": "step"}),
    ),
)


def _index_lines(header: Header) -> Iterator[tuple[str, bytes]]:
    """The thread's name, which Codex keeps in a list of its own."""
    title = header.session.get("title")
    if title:
        line = {"id": header.session["id"], "thread_name": title, "updated_at": header.session.get("ended_at")}
        yield f".codex/{locate.THREAD_INDEX}", dumps(line) + b"\n"


def _resumes_file(path: Path, _parts: Sequence[str]) -> bool:
    """True for a rollout that begins with its head and stands for its thread.

    Codex has forgotten the older forms, and finds what replaces another rollout only beside that one.
    """
    named = locate.parse_name(path)
    if named is not None and named.rollout is not None:
        return False
    with open_source(path) as stream:
        return b'"session_meta"' in stream.read(_HEAD_BYTES)


def _referred_history(session: Mapping[str, JSON]) -> Sequence[str]:
    """The history before a fork or a revert, where the rollout names the thread that holds it."""
    base = _base(session)
    return [] if base is None else [f"the history before it, in the thread {_base_thread(base)}"]


def _missing_history(session: Mapping[str, JSON], home: Path) -> Sequence[str]:
    thread = _base_thread(_base(session))
    near = home / ".codex" / locate.SESSIONS / "any"
    is_there = isinstance(thread, str) and locate.find_rollout(near, thread) is not None
    return () if is_there else _referred_history(session)


def _base(session: Mapping[str, JSON]) -> JSON:
    own = (session.get("extensions") or {}).get(locate.AGENT) or {}
    return own.get("history_base")


def _base_thread(base: JSON) -> JSON:
    return base.get("thread_id") if isinstance(base, dict) else None


def _aside(unit: Unit) -> RecordText | None:
    """What a record says that is part of the conversation, unless a message says it too."""
    record, payload = unit.native, unit.native.get("payload")
    kind, is_unknown = record.get("type"), unit.value.get("kind") == "other"
    if isinstance(payload, dict):
        match kind:
            case "event_msg":
                return _aside_of_event(payload)
            case "inter_agent_communication":
                return _text_aside("a message of another agent", _text(payload, "content"), begins=True)
            case "response_item" | "request_item" if is_unknown:
                # Items of a later version may be part of the conversation; of other lines nothing can be known.
                return _unknown_item(payload.get("type"))
    elif is_unknown and record and "payload" not in record:
        # A record without an envelope that is none of the known items.
        if not kind and "role" in record:
            return RecordText(f"a line of the role {record['role']!r}", "clew does not support it")
        if kind and isinstance(kind, str):
            return _unknown_item(kind)
    return None


def _compaction(unit: Unit, _before: Unit | None) -> Compaction | None:
    """The items that Codex sends in place of the history, without the context that it injects anew."""
    record, payload = unit.native, unit.native.get("payload")
    if record.get("type") != "compacted" or not isinstance(payload, dict):
        return None
    history, summary = payload.get("replacement_history"), _text(payload, "message")
    messages: list[dict[str, JSON]] = []
    for item in filter(_is_object, history if isinstance(history, list) else ()):
        found = decode_leniently(item, Payload)
        if found.encrypted_content and found.type in _ENCRYPTED_SUMMARIES:
            return Compaction(is_unreadable=True)
        role = role_of(found.type or "", found.role)
        if role != "system" and not (role == "user" and is_injected_item(found, texts_of(found.content))):
            messages.append({"role": role, "content": to_builtins(blocks_of(found.type or "", found))})
    # Until late 2025 the record held the summary alone.
    if summary.strip() and not any(summary in block.get("text", "") for each in messages for block in each["content"]):
        messages.append({"role": "user", "content": [{"type": "text", "text": summary}]})
    return Compaction(tuple(messages)) if messages else Compaction(is_unreadable=True)


def _unknown_item(kind: JSON) -> RecordText:
    return RecordText(f"an item of the kind {kind!r}", "clew does not support it")


def _aside_of_event(event: _Payload) -> RecordText | None:
    call = _text(event, "call_id")
    match event.get("type"):
        case "agent_reasoning":
            # In sessions of other agents no item holds it.
            return _text_aside("thinking", _text(event, "text"), "assistant", is_thought=True)
        case "item_completed":
            item = event.get("item")
            if isinstance(item, dict) and item.get("type") == "Plan":
                return _text_aside("a proposed plan", _text(item, "text"), "assistant")
        case "exited_review_mode":
            return _review(event.get("review_output"))
        case "web_search_end" if event.get("results"):
            return RecordText("the results of a web search", "no message holds it")
        case "exec_command_end" | "patch_apply_end" if not call.startswith(_IN_CODE):
            return None
        case "mcp_tool_call_end" | "exec_command_end" | "patch_apply_end":
            # A script made this call, so no item records it.
            return RecordText("a call that only an event mentions", "no message holds it or its result", call=call)
    return None


def _is_object(value: JSON) -> bool:
    return isinstance(value, dict)


def _text(value: _Payload, name: str) -> str:
    text = value.get(name)
    return text if isinstance(text, str) else ""


def _text_aside(
    what: str, text: str, role: str = "user", *, begins: bool = False, is_thought: bool = False
) -> RecordText | None:
    if not text.strip():
        return None
    return RecordText(
        what, text=text, role=role, identifying_texts=(text,), belongs_to_next_message=begins, is_thought=is_thought
    )


def _review(output: JSON) -> RecordText | None:
    """What a review found, as the texts of its parts."""
    if not isinstance(output, dict):
        return None
    explanation, findings = _text(output, "overall_explanation"), output.get("findings")
    titles, parts = [], [explanation]
    for finding in findings if isinstance(findings, list) else ():
        if isinstance(finding, dict):
            location, place = finding.get("code_location"), ""
            if isinstance(location, dict):
                lines = location.get("line_range")
                at = f":{lines.get('start')}-{lines.get('end')}" if isinstance(lines, dict) else ""
                place = f"{_text(location, 'absolute_file_path')}{at}"
            titles.append(_text(finding, "title"))
            parts.append("\n".join(text for text in (titles[-1], _text(finding, "body"), place) if text))
    text = "\n\n".join(part for part in parts if part.strip())
    marks = (explanation, *titles)
    return RecordText("what a review found", text=text, role="assistant", identifying_texts=marks) if text else None


def _unknown_role(unit: Unit) -> str | None:
    """The role of a message that is none of the client's."""
    role = _item(unit).get("role")
    return role if isinstance(role, str) and role not in _ROLES else None


def _namespace(unit: Unit) -> str | None:
    """What the name of a tool begins with, where its item says so."""
    space = _item(unit).get("namespace")
    return space if isinstance(space, str) and space else None


def _annotations(unit: Unit) -> Iterator[str]:
    """What stands beside the texts of a message and has no place in other agents."""
    content = _item(unit).get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and part.get("type") in TEXT_TYPES and part.get("annotations"):
            yield "the annotations of a text"


def _item(unit: Unit) -> Mapping[str, JSON]:
    """The item of a message, whether it stands in an envelope or without one."""
    item = unit.native.get("payload", unit.native)
    return item if isinstance(item, Mapping) else {}


TARGET_PROFILE = TargetProfile(
    capacity=Capacity(
        images=True,
        images_in_results=True,
        thinking=True,
        titles=True,
        subagents=True,
        foreign_lines=True,
        compactions=True,
    ),
    tools=TOOLS,
    id_keys=ID_KEYS,
    resume=lambda session: ["codex", "resume", str(session["id"])],
    resumes_file=_resumes_file,
    user_note_prefixes=SPOKEN,
    shows_failure=lambda output: exit_status(tool_output(output)).is_error is True,
    unknown_kind=_unknown_role,
    aside=_aside,
    compaction=_compaction,
    namespace=_namespace,
    unconvertible=_annotations,
    read_with_history=read_with_history,
    referred_history=_referred_history,
    missing_history=_missing_history,
    index_lines=_index_lines,
    # One that was put away is not looked for.
    can_find_by_id=lambda path, _identity: path.suffix != ".gz" and locate.ARCHIVED not in path.parts,
)
