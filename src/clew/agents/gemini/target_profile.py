"""What Gemini CLI can hold of other agents' sessions, and how it is made to list them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from clew.agents.encoding import NO_RESULT
from clew.agents.gemini.encode import GUARD, project_name
from clew.agents.gemini.events import CONTEXT_TAGS, FINISHED_STATES
from clew.agents.gemini.locate import CHATS, is_chat
from clew.agents.gemini.project_registry import MARKER, REGISTRY, registered
from clew.agents.gemini.records import message_record
from clew.agents.gemini_content import DOCUMENT_TYPES, is_command
from clew.agents.target_profile import Capacity, Header, ReadFile, TargetProfile
from clew.agents.tools import Tool, todos_from, todos_into
from clew.model.unit import Unit

_PATH = {"path": "file_path"}
_FOLDER = {"path": "dir_path"}
TOOLS = (
    Tool("shell", "run_shell_command", {"cwd": "dir_path"}),
    Tool("read", "read_file", _PATH),
    Tool("write", "write_file", _PATH),
    Tool("edit", "replace", {**_PATH, "old": "old_string", "new": "new_string"}),
    Tool("glob", "glob", _FOLDER),
    Tool("grep", "grep_search", {**_FOLDER, "glob": "include"}),
    Tool("grep", "search_file_content", {**_FOLDER, "glob": "include"}),
    Tool("list", "list_directory", _FOLDER),
    Tool("fetch", "web_fetch"),
    Tool("search", "google_web_search"),
    Tool(
        "todos",
        "write_todos",
        read=todos_from({"description": "content"}),
        write=todos_into({"content": "description"}),
    ),
)


def _is_path(workspace: str) -> bool:
    """False for the mere hash of a folder that nobody knows."""
    return "/" in workspace or "\\" in workspace


def _register(header: Header, read: ReadFile) -> Iterator[tuple[str, bytes]]:
    """The list of projects, and the mark beside the chats: without both the client passes over the folder."""
    workspace = header.session["workspace"]
    if not _is_path(workspace):
        return
    name = f".gemini/{REGISTRY}"
    before = read(name)
    _, text = registered(before, workspace)
    if text != before:
        yield name, text
    for store in ("tmp", "history"):
        mark = f".gemini/{store}/{project_name(header.session)}/{MARKER}"
        if read(mark) is None:
            yield mark, workspace.encode()


def _project_folder_name(workspace: str, read: ReadFile) -> str:
    return registered(read(f".gemini/{REGISTRY}"), workspace)[0] if _is_path(workspace) else ""


def _resumes_file(path: Path, parts: Sequence[str]) -> bool:
    """True for a chat in one file: of several the client reads one alone."""
    return is_chat(path) and not parts


def _unknown_type(note: Unit) -> str | None:
    """The type of a message that is none of the client's."""
    kind = message_record(note.native, note.value.get("uuid")).get("type")
    return None if kind in _NOTES else str(kind)


_NOTES = ("info", "warning", "error")


def _unfinished_results(message: Unit) -> Iterator[str]:
    """What calls gave that had not ended: there is no message with their results."""
    calls = message_record(message.native, message.value.get("uuid")).get("toolCalls")
    if message.value["role"] == "assistant" and isinstance(calls, list):
        for call in calls:
            is_open = isinstance(call, dict) and isinstance(call.get("status"), str)
            if is_open and call["status"] not in FINISHED_STATES and call.get("result"):
                yield "the partial output of a call"


TARGET_PROFILE = TargetProfile(
    capacity=Capacity(
        images=True,
        documents=True,
        images_in_results=True,
        images_in_replies=True,
        image_types=tuple(f"image/{kind}" for kind in ("png", "jpeg", "webp", "heic", "heif", "gif", "bmp")),
        document_types=DOCUMENT_TYPES,
        typed_links=True,
        thinking=True,
        failures=True,
        titles=True,
        subagents=True,
        foreign_lines=True,
    ),
    tools=TOOLS,
    id_keys=("sessionId",),
    resume=lambda session: ["gemini", "--resume", str(session["id"])],
    resumes_file=_resumes_file,
    injected_prefixes=CONTEXT_TAGS,
    is_command=is_command,
    unknown_kind=_unknown_type,
    unconvertible=_unfinished_results,
    no_result_text=NO_RESULT,
    text_guard=GUARD,
    nests_subagents=True,
    project_folder_name=_project_folder_name,
    register=_register,
    can_find_by_id=lambda path, _identity: path.parent.name == CHATS and path.suffix in (".json", ".jsonl"),
)
