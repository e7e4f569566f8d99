"""The command line: a face without logic. A command's module is imported when the command is run."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from clew.cli.group import main as main

ABOUT = (
    "The history of your AI coding agents: find it, read it, prove it, export it.",
    "Without a command: what is here.",
)
OPTIONS = {
    "--home DIR": "Home folder to read agents from; repeatable.",
    "--source NAME": "Only this source, as `clew sources` names it; repeatable.",
    "--refresh": "Fetch what is new on hosts first.",
    "--no-sync": "Use the catalog as it is.",
    "--json": "Print JSON.",
    "--version": "Print the version and leave.",
    "-h, --help": "Show this message and exit.",
}
COMMANDS = {
    "list": "Sessions, newest first.",
    "show": "One session, readable.",
    "web": "All of it in a browser, on this machine alone.",
    "search": "Everything that was said, thought, called and given back.",
    "stats": "Tokens, costs, turns, tools, time and changed lines.",
    "tail": "The end of a session, and with -f what comes.",
    "graph": "The tree of a conversation, with its forks.",
    "files": "What each message did to which files.",
    "diff": "How files changed between two messages, or by one.",
    "restore": "Files put back as they were at a message.",
    "blame": "Which session, message and prompt wrote each line of a file.",
    "export": "Sessions as unified JSON, NDJSON or Markdown.",
    "convert": "A session written for another agent, which then goes on with it.",
    "resume": "Go on with a session, in its own agent or in another.",
    "import": "A unified document back to an agent's own files.",
    "verify": "Prove that nothing is lost, byte for byte.",
    "validate": "Find what is wrong with sessions.",
    "redact": "Find secrets in sessions, mask them, or clean sessions in place.",
    "archive": "Keep the raw files of every session before an agent deletes them.",
    "push": "Sessions to a PostgreSQL server that many machines share.",
    "lake": "All sessions as Parquet tables, in a folder or an object store.",
    "migrate": "Bring old Sage sessions to the current form.",
    "record": "Append messages from any program to a session of clew's own store.",
    "branches": "The branches of a session in clew's own store.",
    "branch": "Look at one branch, name it, go to it, or compare two.",
    "undo": "Go back in a session of clew's own store, with its files.",
    "redo": "Take the last undo back.",
    "erase": "Messages, or a whole session, of clew's own store, gone for good.",
    "todos": "The task list of a session, as it changed.",
    "doctor": "Find and mend what is wrong with a store on disk.",
    "schema": "The JSON Schema of the unified document.",
    "sync": "Bring the catalog up to date: what search and statistics look into.",
    "sql": "Questions to the catalog, in SQL; read-only.",
    "agents": "The agents clew reads, and where they keep sessions.",
    "sources": "Where sessions come from: homes and other machines.",
    "demo": "Write a small home folder to try everything on.",
}


def __getattr__(name: str) -> object:
    """The group of all commands is made when it is first used: the help of the whole does without."""
    if name == "main":
        from clew.cli.group import main

        return main
    raise AttributeError(f"module 'clew.cli' has no attribute {name!r}")
