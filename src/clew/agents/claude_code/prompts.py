"""Which user records are the words of a person. Flags come before text: people can type markers too."""

from __future__ import annotations

from collections.abc import Sequence

from clew.derive.prompts import MARKERS

_ENCODED = tuple(b'"' + marker.encode() for marker in MARKERS)


def human_prompt(content: str | Sequence[object] | None, origin: str | None, texts: Sequence[str]) -> bool:
    """True for a user record that a person wrote; tool results and injected records are sorted out before."""
    if origin is not None:
        return origin == "human"
    if content is None or any(text.startswith(MARKERS) for text in texts):
        return False
    attached = not isinstance(content, str) and any(
        getattr(block, "type", None) in ("image", "document") for block in content
    )
    return bool(texts) or attached


def queued_prompt(prompt: bytes, origin: str | None) -> bool:
    """The same for a prompt that was sent while a turn was running; `prompt` is its JSON."""
    if origin is not None:
        return origin == "human"
    return prompt[:1] in b'"[' and prompt not in (b"[]",) and not any(marker in prompt for marker in _ENCODED)
