"""What text says of git commits: commands that make them, the hashes that git prints, trailers that name a session."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import Literal, NamedTuple

_MAX_COMMAND_CHARS = 100_000
_MAX_OUTPUT_CHARS = 200_000
"""Characters at the start and at the end of an output that are searched."""
_MAX_HASHES_PER_CALL = 50
_ARGUMENT = r"""(?:"[^"\n]*"|'[^'\n]*'|[^\s"'])++"""
_SEPARATE_VALUE = r"-[cC]|--git-dir|--work-tree|--namespace"
"""Options of git whose value can be the next argument."""
_DRY_RUN = r"""(?>[ \t]+(?!--dry-run(?![\w-]))(?:"[^"\n]*"|'[^'\n]*'|[^\s"';&|])++){0,50}+[ \t]+--dry-run(?![\w-])"""
_COMMITTING = re.compile(
    rf"\bgit(?:\.exe)?(?>\s+(?:{_SEPARATE_VALUE})\s+{_ARGUMENT}|\s+--?[A-Za-z][\w-]*(?:={_ARGUMENT})?)*+"
    rf"\s+(commit|merge|cherry-pick|revert|rebase|am|pull)(?![\w-])(?!{_DRY_RUN})"
)
_AUTHORING = frozenset({"commit", "merge", "revert"})
"""Commands whose commits are new. The others take over commits with their author dates."""
_SUMMARIZING = frozenset({"commit", "merge", "cherry-pick", "revert", "rebase"})
"""Commands that can print the summary of a commit; `git merge` does with `--continue`."""
_SUMMARY = re.compile(r"\[[^\[\]\n]{1,300} ([0-9a-f]{7,64})\] ([^\r\n]*)")
"""What `git commit` prints: `[main 1a2b3c4] Subject`, also `[main (root-commit) 1a2b3c4] Subject`."""
_HASH_LINE = re.compile(r"^(?:commit )?([0-9a-f]{7,64})(?=\s|$)(?: ([^\r\n]*))?", re.MULTILINE)
"""What `git log --oneline`, `git log` and `git rev-parse` print."""
CHECKPOINT_TRAILER = "Entire-Checkpoint"
_TRAILER_KEYS = ("Claude-Session", "Entire-Session", CHECKPOINT_TRAILER, "Amp-Thread-ID", "Agent-Logs-Url")
_TRAILER = re.compile(
    rf"^[ \t]*({'|'.join(_TRAILER_KEYS)})[ \t]*:[ \t]*(\S{{1,500}})",
    re.MULTILINE | re.IGNORECASE,
)
_SESSION_URL = re.compile(r"https://claude\.ai/code/(session_[A-Za-z0-9]{1,100})")
"""Claude Code on the web writes this link without a trailer, too."""
_ENTIRE_DATE = re.compile(r"^\d{4}-\d\d-\d\d-(?=[0-9a-f]{8}-)")
"""Early versions of Entire put the date before the agent's session id."""
_CO_AUTHOR = re.compile(r"^[ \t]*Co-authored-by:[^<>\n]{0,200}<([^<>\s]{1,200})>", re.MULTILINE | re.IGNORECASE)
_AGENT_ADDRESSES = {
    "noreply@anthropic.com": "Claude",
    "cursoragent@cursor.com": "Cursor",
    "noreply@openai.com": "Codex",
    "amp@ampcode.com": "Amp",
}
_COPILOT_ADDRESS = re.compile(r"(?:\d+\+)?copilot@users\.noreply\.github\.com", re.IGNORECASE)
_OTHER_COMMIT = re.compile(
    r"^[ \t]*(?:commit |\(cherry picked from commit )([0-9a-f]{40,64})\)?[ \t\r]*$", re.MULTILINE
)
_LIST_MARK = re.compile(r"^[*-] ")

MentionKind = Literal["made", "printed", "silent", "trailer"]
"""How a call mentions a commit: git said that it made it; its hash was printed; nothing was printed; the command holds
a trailer that names a session."""


class CommitMention(NamedTuple):
    """A commit that a call of a tool may have made."""

    kind: MentionKind
    name: str = ""
    """A hash or its beginning; for a trailer, the name of the session in it."""
    subject: str = ""


class SessionTrailer(NamedTuple):
    """A line of a commit message that names a session or a checkpoint of one."""

    key: str
    name: str
    """The id: the last part of an address."""


def makes_commits(command: str) -> bool:
    """True for a shell command that calls git to make commits."""
    return "git" in command and _COMMITTING.search(command[:_MAX_COMMAND_CHARS]) is not None


def _calls_any(command: str, subcommands: Container[str]) -> bool:
    return any(match[1] in subcommands for match in _COMMITTING.finditer(command[:_MAX_COMMAND_CHARS]))


def commit_mentions(command: str, output: str, *, failed: bool) -> list[CommitMention]:
    """The commits that a command made, as its output names them, and the sessions that its trailers name."""
    found = {CommitMention("trailer", trailer.name) for trailer in session_trailers(command[:_MAX_COMMAND_CHARS])}
    ordered = sorted(found)
    if len(output) > 2 * _MAX_OUTPUT_CHARS:
        output = f"{output[:_MAX_OUTPUT_CHARS]}\n{output[-_MAX_OUTPUT_CHARS:]}"
    if output.lstrip().startswith("{"):
        # Some agents record the output as a string in a JSON object.
        output = output.replace("\\n", "\n")
    kind: MentionKind = "made" if _calls_any(command, _SUMMARIZING) else "printed"
    summaries = [CommitMention(kind, match[1], match[2].strip()) for match in _SUMMARY.finditer(output)]
    known = {mention.name for mention in summaries}
    printed = [
        CommitMention("printed", match[1], (match[2] or "").strip())
        for match in _HASH_LINE.finditer(output)
        if match[1] not in known
    ]
    hashes = [
        mention._replace(subject=mention.subject.encode("utf-8", "replace").decode())
        for mention in list(dict.fromkeys(summaries + printed))[:_MAX_HASHES_PER_CALL]
    ]
    if not hashes and not failed and _calls_any(command, _AUTHORING):
        hashes = [CommitMention("silent")]
    return ordered + hashes


def session_trailers(message: str) -> list[SessionTrailer]:
    """The sessions and checkpoints that a commit message names, anywhere in it: a squash moves trailers up."""
    found = [SessionTrailer(_canonical_key(match[1]), _last_part(match[2])) for match in _TRAILER.finditer(message)]
    linked = [SessionTrailer("Claude-Session", match[1]) for match in _SESSION_URL.finditer(message)]
    return list(dict.fromkeys(found + linked))


def _canonical_key(key: str) -> str:
    return next(name for name in _TRAILER_KEYS if name.lower() == key.lower())


def _last_part(value: str) -> str:
    name = value.split("?")[0].split("#")[0].rstrip("/").rpartition("/")[2]
    return _ENTIRE_DATE.sub("", name or value).encode("utf-8", "replace").decode()


def co_authoring_agents(message: str) -> list[str]:
    """The agents that a commit message names as co-authors. They name no session."""
    found = []
    for match in _CO_AUTHOR.finditer(message):
        address = match[1].lower()
        name = "Copilot" if _COPILOT_ADDRESS.fullmatch(address) else _AGENT_ADDRESSES.get(address)
        found += [name] if name else []
    return list(dict.fromkeys(found))


def source_commits(message: str) -> list[str]:
    """The commits that a message says it was made of: by `git merge --squash` or `git cherry-pick -x`."""
    return [match[1] for match in _OTHER_COMMIT.finditer(message)]


def listed_subjects(message: str) -> Iterator[str]:
    """The lines below the subject of a message, as a squash lists the subjects of its commits."""
    for line in message.split("\n")[1:]:
        if text := _LIST_MARK.sub("", line.strip()):
            yield text
