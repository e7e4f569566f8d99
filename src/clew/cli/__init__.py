"""The command line: an interface without logic. A command's module is imported when the command is run."""

from __future__ import annotations

ABOUT = (
    "Find, read, count, share and keep the sessions of your AI coding agents.",
    "REF names a session: the beginning of its id, a path, agent:id, or @last for the newest; REF#12 is its message"
    " 12. Without a command, print a summary of the sessions found.",
    "Exit codes: 0 done, 1 nothing found, 2 wrong usage, 3 a file cannot be read, 4 invalid data, 5 busy, 6 refused"
    " because data would be lost, 7 a remote host did not answer.",
)
INTERRUPTED = 130
"""Exit code after Ctrl-C, or Esc in a list."""
OPTIONS = {
    "--home DIR": "Read agents' sessions below this home folder instead of your own; repeatable.",
    "--source NAME": "Read only this source, as named by `clew sources`; repeatable.",
    "--refresh": "Fetch new sessions from remote hosts first.",
    "--no-sync": "Use the catalog as it is, without updating it first.",
    "--timezone ZONE": "Show and read times in this zone, such as Europe/Berlin or UTC; default: that of the system.",
    "--json": "Print JSON.",
    "--yes": "Do it; without this, only print what would be done.",
    "--dry-run": "Print what would be done; change nothing.",
    "--version": "Show the version and exit.",
    "-o, --output PATH": "Write to this file or folder.",
    "--into DIR": "Restore into this folder; it is created if it does not exist.",
    "--in-place": "Restore files to where they were.",
    "--to AGENT": "The agent that the session is converted for.",
    "--folder DIR": "The project's folder.",
    "--format FORMAT": "Format of the output.",
    "--force": "Replace files that exist.",
    "--allow-loss": "Continue even if something is lost.",
}
"""Options that mean the same in every command that has them; the help of a command may say more."""
COMMAND_GROUPS = {
    "Read": {
        "list": "List sessions, newest first.",
        "pick": "Choose a session from a list; show, resume or export it.",
        "show": "Print a session, or one message of it.",
        "tail": "Print the last messages of a session; -f follows new ones.",
        "graph": "Draw the tree of a conversation with its forks.",
        "watch": "Show what runs now and what it costs, live.",
        "todos": "Print the task list of a session and how it changed.",
        "annotate": "Add stars, labels and notes to sessions and messages.",
        "resume": "Continue a session in its own agent, or in another one.",
        "web": "Browse all sessions in a local web app.",
        "mcp": "Let agents search and read all sessions (MCP server).",
        "skill": "Teach agents to use clew for questions about earlier sessions.",
    },
    "Find and count": {
        "search": "Search prompts, answers, thinking, tool calls and tool output.",
        "stats": "Count tokens, cost, turns, tool calls, time and changed lines.",
        "statusline": "Print costs for the status line of Claude Code.",
        "sql": "Query the catalog with SQL, read-only.",
    },
    "Files": {
        "files": "List the files that a session read or changed, by message.",
        "diff": "Show how files changed between two messages, or in one.",
        "blame": "Show which session, message and prompt wrote each line of a file.",
        "commits": "Show which sessions made the commits of a git range.",
        "restore": "Restore files as they were at a message.",
    },
    "Share": {
        "export": "Write sessions as JSON, NDJSON, Markdown or HTML.",
        "import": "Restore an agent's own files from an exported document.",
        "convert": "Write a session in another agent's format.",
        "redact": "Find and mask secrets in sessions or files.",
        "bundle": "Write sessions as evidence that others can check, and check it.",
    },
    "Store (sessions that clew itself records)": {
        "record": "Append messages from any program to a session.",
        "branches": "List the branches of a session.",
        "branch": "Show, name, switch to or compare branches.",
        "undo": "Go back in a session and restore its files.",
        "redo": "Take back the last undo.",
        "erase": "Erase messages or a whole session for good.",
    },
    "Keep": {
        "archive": "Keep compressed copies of every session's files.",
        "hook": "Let agents archive a session when it ends.",
        "clean": "Archive old sessions, then remove them from their agents' folders.",
        "verify": "Check that an export restores the agent's files byte for byte.",
        "validate": "Report damaged or inconsistent records in sessions.",
    },
    "Company": {
        "push": "Copy sessions to a shared PostgreSQL server.",
        "totals": "Publish monthly costs on that server, without single people.",
        "lake": "Write sessions as Parquet tables to a folder or an object store.",
    },
    "Maintenance": {
        "sync": "Update the catalog that the other commands read.",
        "sources": "Manage home folders, remote hosts and moved projects.",
        "agents": "List the agents found, their versions and folders.",
        "doctor": "Check the store and the catalog for damage, and repair it.",
        "migrate": "Convert old Sage sessions to the current format.",
        "schema": "Print the JSON Schema of exported documents.",
        "completion": "Print the completion script for bash, zsh or fish.",
        "demo": "Write a home folder with a year of example sessions.",
    },
}
"""The commands in the order and groups of `clew --help`."""
COMMANDS = {name: text for commands in COMMAND_GROUPS.values() for name, text in commands.items()}
OTHER_NAMES = {
    "bookmark": "annotate set",
    "cat": "show",
    "continue": "resume",
    "cost": "stats",
    "costs": "stats",
    "delete": "clean",
    "find": "search",
    "grep": "search",
    "label": "annotate set",
    "log": "show",
    "ls": "list",
    "move": "sources map",
    "mv": "sources map",
    "note": "annotate set",
    "notes": "annotate list",
    "open": "resume",
    "read": "show",
    "remove": "clean",
    "rm": "clean",
    "serve": "web",
    "sessions": "list",
    "share": "export",
    "star": "annotate set",
    "tag": "annotate set",
    "tree": "graph",
    "usage": "stats",
    "view": "show",
}
"""Names that other tools have for a command; `clew` suggests its own."""
OTHER_OPTIONS = {
    "--after": "--since",
    "--before": "--until",
    "--full": "--detail",
    "--into": "--to",
}
"""Names that other tools have for an option; suggested where the command has the second one."""
