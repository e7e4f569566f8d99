"""Saved sessions of sage-emacs, made for tests."""

from __future__ import annotations

import json
from pathlib import Path

from clew.model.json import JSON

PLACES = (".emacs.d/sage/sessions", ".config/emacs/sage/sessions")


def message(role: str = "user", content: JSON = "Hello.", **more: JSON) -> dict[str, JSON]:
    """One that was said."""
    return {"role": role, "content": content, "timestamp": "2026-01-11T17:00:00-0500", **more}


def saved(*messages: JSON, **more: JSON) -> dict[str, JSON]:
    """A session as the program saves it, with what a test wants otherwise."""
    found: dict[str, JSON] = {"name": "the bell", "model": "gemini-2.0-flash-exp", "provider": "gemini"}
    found |= {"messages": list(messages), "created_at": "2026-01-11T16:59:00-0500"}
    found |= {"updated_at": "2026-01-11T17:30:00-0500", "message_count": len(messages), "total_tokens": 99}
    return {**found, "workspace": "/home/ada/bell/", **more}


def without(session: dict[str, JSON], *names: str) -> dict[str, JSON]:
    """The same with some keys less."""
    return {name: value for name, value in session.items() if name not in names}


def pretty(session: JSON) -> bytes:
    """In the layout of the program."""
    return json.dumps(session, indent=2, ensure_ascii=False).encode()


def write(home: Path, content: bytes | dict[str, JSON], name: str = "the_bell.json", place: str = PLACES[0]) -> Path:
    """A session in its place below a home."""
    path = home / place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else pretty(content))
    return path
