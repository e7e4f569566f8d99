"""What Cline can hold of other agents' sessions, its tools, and how a session is resumed."""

from __future__ import annotations

from clew.agents.cline.locate import is_subagent, is_task, main_path
from clew.agents.encoding import NO_RESULT
from clew.agents.target_profile import Capacity, TargetProfile
from clew.agents.tools import Arguments, Tool, without


def _read_commands(arguments: Arguments) -> Arguments:
    """The command of a call; one with several keeps its list."""
    commands = arguments.get("command")
    is_single = type(commands) is list and len(commands) == 1 and type(commands[0]) is str
    return {**arguments, "command": commands[0]} if is_single and type(commands) is list else arguments


def _write_commands(arguments: Arguments) -> Arguments:
    command = arguments.get("command")
    return {**arguments, "command": [command]} if type(command) is str else arguments


def _read_files(arguments: Arguments) -> Arguments:
    """The path of a call that reads one whole file."""
    files = arguments.get("files")
    file = files[0] if type(files) is list and len(files) == 1 else None
    if type(file) is not dict or file.keys() != {"path"}:
        return arguments
    return {**without(arguments, "files"), "path": file["path"]}


def _write_files(arguments: Arguments) -> Arguments:
    if type(arguments.get("path")) is not str:
        return arguments
    return {**without(arguments, "path"), "files": [{"path": arguments["path"]}]}


TOOLS = (
    Tool("shell", "run_commands", {"command": "commands"}, _read_commands, _write_commands),
    Tool("read", "read_files", {}, _read_files, _write_files),
    Tool("edit", "editor", {"old": "old_text", "new": "new_text"}),
    Tool("write", "editor", {"content": "new_text"}),
)

TARGET_PROFILE = TargetProfile(
    capacity=Capacity(
        images=True,
        images_in_results=True,
        failures=True,
        titles=True,
    ),
    tools=TOOLS,
    id_keys=("sessionId", "session_id"),
    resume=lambda session: ["cline", "--id", str(session["id"])],
    resumes_file=lambda path, _parts: not is_task(path),
    no_result_text=NO_RESULT,
    main_path=main_path,
    can_find_by_id=lambda path, _identity: not is_task(path) and not is_subagent(path) and path.suffix == ".json",
)
