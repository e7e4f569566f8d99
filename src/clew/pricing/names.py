"""The names that agents write for models, and the one that prices are filed under."""

from __future__ import annotations

import re

_BRACKET = re.compile(r"\[[^\]]*\]$")
"""`claude-sonnet-4-5[1m]`: how much context was asked for."""
_REGION = re.compile(r"^(?:[a-z]{2,6}\.)?(?:anthropic|openai|google|meta|mistral|deepseek|qwen|moonshot|zai)\.")
"""`us.anthropic.claude-...`: where a cloud runs it, and whose it is."""
_VERSION = re.compile(r"(?:-v\d+)?(?::\d+|:[a-z]+)$|-v\d+$")
"""`-v1:0`, `:free`: a cloud's own version or plan."""
_DATE = re.compile(r"[-@](?:20\d{6}|20\d\d-\d\d-\d\d)$")
_LATEST = re.compile(r"[-@](?:latest|default)$")
_DOTTED = re.compile(r"^(claude-.*\d)\.(\d)")


def plain_name(model: str) -> str:
    """A model's name without provider, region, version, date and brackets, in small letters.

    `anthropic/claude-sonnet-4.5`, `us.anthropic.claude-sonnet-4-5-20250929-v1:0`, `claude-sonnet-4-5@20250929` and
    `claude-sonnet-4-5-20250929[1m]` are all `claude-sonnet-4-5`.
    """
    name = _BRACKET.sub("", model.strip().lower()).rpartition("/")[2]
    name = _REGION.sub("", name)
    for pattern in (_VERSION, _DATE, _LATEST):
        name = pattern.sub("", name)
    return _DOTTED.sub(r"\1-\2", name)
