"""Whether a file is a transcript, from its name and its first bytes."""

from __future__ import annotations

import re
from pathlib import Path

from clew.agents.base import Claim
from clew.agents.claude_code import locate

_RECORD = re.compile(rb'"(?:sessionId|parentUuid|uuid|leafUuid|isSidechain|messageId|customTitle|aiTitle)"\s*:')
_SAGE = re.compile(rb'"context"\s*:\s*\{|"toolResults"|"toolCalls"')
_TYPE = re.compile(
    rb'"type"\s*:\s*"(?:user|assistant|summary|system|file-history-snapshot|queue-operation|attachment)"'
)
_GEMINI = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*\{\s*"sessionId"\s*:\s*"[^"]*"\s*,\s*"(?:projectHash|startTime)"|(?s:.)*^\{"\$(?:set|rewindTo)":',
    re.MULTILINE,
)


def claims(path: Path, head: bytes) -> Claim:
    """How sure it is that the file is a transcript."""
    name = path.name.removesuffix(".gz").removesuffix(".zst")
    if not name.endswith(".jsonl") or name.startswith("rollout-") or name == "history.jsonl":
        return Claim.NO
    # Sage Agent uses the same keys, but nests where it was and what it called.
    if name == "messages.jsonl" and _SAGE.search(head):
        return Claim.NO
    # Gemini CLI's users say "user" too, but its logs begin with whose session it is, and change it in place.
    if _GEMINI.match(head):
        return Claim.NO
    # What the records say comes before where they lie: sage-emacs keeps conversations in this tree too.
    if _TYPE.search(head):
        return Claim.YES
    if b'"type"' in head or (_RECORD.search(head) and b'"message"' in head):
        return Claim.MAYBE
    return Claim.MAYBE if not head.strip() and locate.is_transcript(name, path.parent) else Claim.NO
