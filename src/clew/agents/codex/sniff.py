"""Whether a file is a rollout, from its name and its first bytes."""

from __future__ import annotations

import re
from pathlib import Path

from clew.agents.base import Claim
from clew.agents.codex import locate
from clew.io.codec import NOT_JSON, loads
from clew.model.json import JSON

_TYPES = frozenset(
    "session_meta turn_context response_item event_msg compacted world_state inter_agent_communication "
    "inter_agent_communication_metadata token_usage_record".split()
)
_LOOKED_AT = 8
"""So many lines are looked at."""
_CUT = re.compile(
    rb'\s*\{\s*(?:"timestamp"\s*:\s*"[^"]*"\s*,\s*)?(?:"ordinal"\s*:\s*\d+\s*,\s*)?'
    rb'"type"\s*:\s*"(?:session_meta|response_item|event_msg|turn_context|compacted|world_state)"'
)
_BARE = re.compile(rb'\s*\{\s*"id"\s*:\s*"[^"]*"\s*,\s*"timestamp"\s*:\s*"[^"]*"\s*,\s*"instructions"\s*:')
_OLDEST = re.compile(rb'\s*\{\s*"session"\s*:\s*\{[^{}]*"id"\s*:[^{}]*"instructions"\s*:')


def claims(path: Path, head: bytes) -> Claim:
    """How sure it is that the file is a rollout."""
    name = path.name.removesuffix(".zst").removesuffix(".gz")
    if name.endswith(".json"):
        return Claim.YES if _OLDEST.match(head) else Claim.NO
    if not name.endswith(".jsonl"):
        return Claim.NO
    head = head.removeprefix(b"\xef\xbb\xbf")
    if any(_is_native(line) for line in head.split(b"\n")[:_LOOKED_AT]):
        return Claim.YES
    return Claim.MAYBE if not head.strip() and locate.is_rollout(path.name) else Claim.NO


def _is_native(line: bytes) -> bool:
    """True for a line of a rollout; it may be cut off. The stream of `codex exec --json` has dotted types."""
    if _BARE.match(line):
        return True
    try:
        record = loads(line)
    except NOT_JSON:
        return _CUT.match(line) is not None
    return isinstance(record, dict) and _is_envelope(record)


def _is_envelope(record: dict[str, JSON]) -> bool:
    kind = record.get("type")
    return isinstance(kind, str) and kind in _TYPES and isinstance(record.get("payload"), dict)
