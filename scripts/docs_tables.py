"""What the generated pages say about the views of the catalog, and the commands whose JSON output is listed."""

from typing import NamedTuple

from clew.hooks.log import OUTCOMES

VIEWS = {
    "sessions": "One row for each session and sub-agent.",
    "messages": "One row for each message. A message that several files repeat has one row.",
    "blocks": "One row for each content block of a message. The text itself is not in a view: use `clew search`.",
    "tool_calls": "One row for each tool call.",
    "usage": "One row for each API call with its tokens and cost.",
    "usage_days": "Sums of `usage` by session, model, branch and quarter of an hour; faster than `usage`.",
    "file_changes": "One row for each file that a tool call changed.",
    "turns": "One row for each message that a person wrote.",
    "turn_days": "Sums of `turns` by session and quarter of an hour.",
    "tool_days": "Sums of `tool_calls` by session, tool and quarter of an hour.",
    "change_days": "Sums of `file_changes` by session, file and quarter of an hour.",
    "todos": "One row for each entry of a task list that a message set.",
    "sources": "One row for each file that was read.",
}

COLUMNS = {
    "active_us": "Time between messages, counting gaps of less than five minutes.",
    "agent": "Id of the agent, such as `claude-code`.",
    "agent_version": "Version of the agent that wrote the session.",
    "cache_creation_1h_tokens": "Input written to a cache for an hour.",
    "cache_creation_5m_tokens": "Input written to a cache for five minutes.",
    "cache_read_tokens": "Input read from a cache.",
    "call_id": "Id that the agent gave the tool call; empty if none.",
    "calls": "API calls.",
    "chars": "Characters of the block's text.",
    "content": "Text of the entry.",
    "cost_nano": "Cost in 10⁻⁹ US dollars.",
    "day_utc": "Day in UTC, `2026-11-03`; empty if unknown.",
    "duration_us": "Time from the call to its result.",
    "ended_us": "Time of the last message.",
    "error_count": "Tool results that are errors.",
    "event_id": "Hash that identifies the message on every machine; joins `messages`.",
    "gap_us": "Time since the message before.",
    "git_branch": "Git branch; empty if not recorded.",
    "has_subagent_records": "1 if the session started sub-agents; NULL if unknown.",
    "idx": "Position in its message, from 0.",
    "input_tokens": "Input that was not read from a cache.",
    "is_agent_session": "1 for a sub-agent.",
    "is_error": "1 if the result is an error.",
    "is_meta": "1 if the agent wrote the message itself.",
    "is_priced": "1 if the model has a price.",
    "is_sidechain": "1 if a sub-agent wrote the message.",
    "lines_added": "Added lines; NULL if unknown.",
    "lines_removed": "Removed lines; NULL if unknown.",
    "longest_us": "Longest call.",
    "max_ts_us": "Time of the last call.",
    "message_count": "Messages.",
    "min_ts_us": "Time of the first call.",
    "model": "Model as the agent names it; empty if not recorded.",
    "month_utc": "Month in UTC, `2026-11`.",
    "name": "Name of the tool.",
    "native_id": "Id that the agent gave the session.",
    "native_uuid": "Id that the agent gave the message.",
    "op": "`create`, `edit` or `delete`.",
    "output_tokens": "Output, reasoning included.",
    "parent_event_id": "`event_id` of the parent message; empty for a root.",
    "parent_session_id": "`session_id` of the session that started this sub-agent.",
    "path": "Path of the file.",
    "priced_calls": "API calls of models with a price.",
    "problems": "Problems of the source, as JSON.",
    "project": "Last part of the workspace.",
    "quarter_hour_us": "Beginning of the quarter of an hour.",
    "reasoning_tokens": "The part of the output that is reasoning.",
    "result_event_id": "`event_id` of the message with the result; empty if there is none.",
    "role": "`user`, `assistant` or `system`.",
    "seq": "Number of the message in its session, as in `REF#12`.",
    "session_id": "Hash that identifies the session on every machine; joins `sessions`.",
    "size": "Size in bytes.",
    "source_host": "Host the file was copied from; empty for this machine.",
    "source_path": "Path of the session's main file.",
    "started_us": "Time of the first message.",
    "state": "State of the source: `new` before it is read, `live`, or `gone` if the file is deleted.",
    "status": "`pending`, `in_progress` or `completed`.",
    "text_chars": "Characters of all text in the message.",
    "title": "Title of the session.",
    "tool_calls": "Tool calls.",
    "tool_errors": "Tool calls with an error.",
    "tool_us": "Time of all calls.",
    "ts_us": "Time of the record.",
    "turns": "Prompts of a person.",
    "turn_count": "Prompts of a person.",
    "type": "Type of the block, as in the [document](document.md#blocks).",
    "usage_id": "Hash that identifies the API call on every machine.",
    "week_utc": "ISO week in UTC, `2026-W45`.",
    "workspace": "Folder of the project.",
    "messages.kind": "`user`, `assistant`, `system`, `tool_result`, `summary`, or `meta` for notes of the agent.",
    "blocks.kind": "What search calls it: `prompt`, `answer`, `thinking`, `input`, `output`; empty if it has no text.",
}
"""Descriptions by column name, or by `view.column` where the name has another meaning there."""


class JsonExample(NamedTuple):
    """A section of the page of JSON output: a note, or a command that is run in the demo home to list its keys."""

    title: str
    command: str = ""
    stdin: str = ""
    note: str = ""
    more: tuple[str, ...] = ()
    """Commands that print values of other types."""


JSON_SETUP = (
    "export f005 -o f005.json",
    "demo year",
    "--home year sync",
    "annotate set f005 --star",
    "annotate export -o annotations.json",
    "hook install --agent codex",
    "hook run --agent codex --foreground",
    "archive",
    "archive hold add --project tide --since 2026-01-01 --until 2026-12-31 --min-age 30 --reason Audit",
    "archive hold remove 1 --reason Done",
)
"""Commands that are run before the examples."""
STATUS_LINE_INPUT = '{"model": {"display_name": "Opus"}, "cost": {"total_cost_usd": 0.38}}'
MESSAGE = '{"role": "user", "content": "Who is here?"}'
HOOK_NOTE = "An `outcome` is one of " + ", ".join(f"`{outcome}`" for outcome in OUTCOMES) + ". "
HOOK_NOTE += "`runs` is null if the list of them is damaged, and `agent` if a hook did not name it."
JSON_EXAMPLES = (
    JsonExample("clew", "--json"),
    JsonExample("clew list", "list --json"),
    JsonExample("clew show, clew tail", note="One [message](document.md#message) per line."),
    JsonExample("clew show --file", "show 71960#21 --file tidepool/predict.py --json"),
    JsonExample("clew watch", note="One [object](../guides/watch.md#for-programs) per look."),
    JsonExample("clew graph", "graph f005 --json"),
    JsonExample("clew graph --tree", "graph f005 --json --tree"),
    JsonExample("clew todos", "todos d75994b4 --json"),
    JsonExample("clew annotate set", "annotate set d75994b4#2 --star --label idea --note Later --json"),
    JsonExample("clew annotate show", "annotate show d75994b4 --json"),
    JsonExample("clew annotate list", "annotate list --json"),
    JsonExample(
        "clew annotate export",
        note="The [file](../guides/annotations.md#another-machine), or with `-o` its path.",
    ),
    JsonExample("clew annotate import", "annotate import annotations.json --json"),
    JsonExample("clew resume --dry-run", "resume 4e27 --to codex --dry-run --json"),
    JsonExample("clew search", "search tide --json"),
    JsonExample("clew stats", "stats --json"),
    JsonExample("clew stats --by", "stats --by model --json"),
    JsonExample(
        "clew stats --budget",
        "stats --by model --budget 10 --json",
        more=("stats --by model --budget 10 --warn-at 80% --json",),
    ),
    JsonExample("clew stats --blocks", "stats --blocks --json"),
    JsonExample("clew statusline", "--home year statusline --no-sync --json", STATUS_LINE_INPUT),
    JsonExample("clew sql", note="One object per row; its keys are the names of the columns."),
    JsonExample("clew files", "files 71960 --json"),
    JsonExample("clew diff", "diff 71960#6 --json"),
    JsonExample("clew restore", "restore 71960#21 --into restored --yes --json"),
    JsonExample(
        "clew blame", "blame restored/tidepool/predict.py:6 --as /home/ada/src/tidepool/tidepool/predict.py --json"
    ),
    JsonExample(
        "clew commits",
        "commits --repo code/tidepool --json",
        more=tuple(
            f"--home linked-commits commits {revisions} --repo code/linked-commits --json"
            for revisions in ("main", "main~2..main~1")
        ),
    ),
    JsonExample("clew export", note="One [document](document.md) per session; several sessions make one line each."),
    JsonExample("clew import", "import f005.json -o copy --json"),
    JsonExample("clew convert", "convert f005 --to codex --home work --allow-loss --json"),
    JsonExample("clew redact scan", "redact scan --project tide --json"),
    JsonExample("clew redact scrub", "redact scrub 71416 --json"),
    JsonExample(
        "clew bundle create",
        "bundle create f005 -o f005.tar --json",
        more=("bundle create f005 -o masked.tar --redact secrets --since 2026-01-01 --until 2026-12-31 --json",),
    ),
    JsonExample(
        "clew bundle verify",
        "bundle verify f005.tar --json",
        more=("bundle verify masked.tar --original f005.tar --json",),
    ),
    JsonExample("clew record", "record --store recorded --session bell --json", MESSAGE),
    JsonExample("clew branches", "branches 65e3 --json"),
    JsonExample("clew branch", note="One record of the [store](store-format.md) per line."),
    JsonExample("clew branch --compare", "branch 65e3 --compare main --json"),
    JsonExample("clew branch --name, clew branch --switch", "branch 65e3 main --name trunk --json"),
    JsonExample("clew undo, clew redo", "undo 65e3 --dry-run --json", more=("undo 65e3 --force --json",)),
    JsonExample("clew erase", "erase 65e3 --json", more=("erase 65e3 3 --json",)),
    JsonExample("clew archive", "archive --json"),
    JsonExample("clew archive list", "archive list --json"),
    JsonExample("clew hook status", "hook status --json", note=HOOK_NOTE),
    JsonExample("clew archive verify", "archive verify --json"),
    JsonExample("clew archive restore", "archive restore f005 --into found --json"),
    JsonExample("clew archive prune", "archive prune --keep-days 3650 --json"),
    JsonExample(
        "clew archive hold add",
        "archive hold add f005 --reason Lawsuit --json",
        more=("archive hold add --project tide --since 30d --until today --min-age 30 --reason Audit --json",),
    ),
    JsonExample("clew archive hold list", "archive hold list --json", more=("archive hold list --removed --json",)),
    JsonExample(
        "clew archive hold remove",
        "archive hold remove 2 --reason Settled --json",
        more=("archive hold remove 3 --reason Done --json",),
    ),
    JsonExample("clew clean", "clean --older-than 30d --json"),
    JsonExample("clew verify", "verify --json"),
    JsonExample("clew validate", "validate 3c98 --json"),
    JsonExample("clew push", "push postgresql://ada@localhost/clew --json"),
    JsonExample("clew totals", "totals postgresql://ada@localhost/clew --json"),
    JsonExample("clew lake write", "lake write ./lake --project tide --json"),
    JsonExample("clew lake compact", "lake compact ./lake --json"),
    JsonExample("clew lake verify", "lake verify ./lake --json"),
    JsonExample("clew sync", "sync --json"),
    JsonExample("clew sources, clew sources list", "sources --json"),
    JsonExample("clew sources check", "sources check --json"),
    JsonExample("clew sources add", "sources add box --json"),
    JsonExample("clew sources fetch", "sources fetch --json"),
    JsonExample(
        "clew sources map",
        "sources map /home/ada/old year --json",
        note="Without OLD: an object, new folders by old ones.",
    ),
    JsonExample("clew sources unmap", "sources unmap /home/ada/old --json"),
    JsonExample("clew sources name", "sources name /home/ada/tide Tides --json"),
    JsonExample("clew sources unname", "sources unname /home/ada/tide --json"),
    JsonExample("clew sources remove", "sources remove box --json"),
    JsonExample("clew agents", "agents --json"),
    JsonExample("clew doctor", "doctor --json"),
    JsonExample("clew migrate", "migrate ada-at-home --dry-run --json"),
    JsonExample("clew schema", note="The JSON Schema of the [document](document.md)."),
    JsonExample("clew demo", "demo other --json"),
)

_SOURCE_TYPES = {
    "host": "string",
    "fetched_at": "string",
    "files": "number",
    "bytes": "number",
    "gone": "number",
    "kept": "number",
}
JSON_TYPES_BESIDE_NULL = {
    "clew list": {"[].source.host": "string"},
    "clew show --file": {"reason": "string"},
    "clew todos": {"[].thinking": "string"},
    "clew stats --blocks": {
        "rows[].remaining_seconds": "number",
        "rows[].cost_per_hour": "number",
        "rows[].projected_cost": "number",
    },
    "clew statusline": {"session_cost_is_at_least": "boolean", "problem": "string"},
    "clew files": {"[].note": "string"},
    "clew diff": {"[].before.reason": "string", "[].after.reason": "string"},
    "clew restore": {"rescue": "string", "files[].why": "string", "files[].reason": "string"},
    "clew convert": {"losses[].message": "number"},
    "clew bundle create": {"sources[].name": "string"},
    "clew bundle verify": {
        "signature": "object",
        "manifest.sources[].name": "string",
        "original.signature": "object",
        "original.manifest.since": "string",
        "original.manifest.until": "string",
        "original.manifest.redaction": "object",
        "original.manifest.sources[].name": "string",
    },
    "clew undo, clew redo": {"rescue": "string"},
    "clew hook status": {"agents[].problem": "string", "runs[].session": "string", "runs[].error": "string"},
    "clew archive prune": {"refusal": "string"},
    "clew archive hold add": {"removed_at": "string", "removal_reason": "string"},
    "clew clean": {"sessions[].reason": "string"},
    "clew validate": {"[].path": "string"},
    "clew sources, clew sources list": {f"[].{key}": kind for key, kind in _SOURCE_TYPES.items()},
    "clew sources check": {
        **{f"[].{key}": kind for key, kind in _SOURCE_TYPES.items()},
        "[].error": "string",
        "[].waiting": "number",
        "[].waiting_bytes": "number",
    },
    "clew sources add": {"fetched_at": "string", "gone": "number", "visit.error": "string"},
    "clew sources fetch": {"[].error": "string"},
    "clew agents": {"[].roots[].error": "string"},
    "clew doctor": {"[].start": "number", "[].end": "number", "[].index": "number", "[].path": "string"},
}
"""The types of keys that are null in all runs of an example: other values need a failure, another machine, a block of
now, or a key to sign with."""
