"""Writes sessions that Kimi Code itself resumes: its own records under another id, or records composed anew."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from clew.agents.base import Header
from clew.agents.kimi_code import locate
from clew.io.paths import safe_relative
from clew.model.json import JSON

_NOT_IN_SLUGS = re.compile(r"[^a-z0-9._-]+")
_MAX_SLUG_CHARS = 40
_HASH_CHARS = 12


def target(header: Header) -> str:
    """Where the main file of the session belongs below a home folder."""
    session = header.session
    folder = f".kimi-code/sessions/{project_folder(session)}"
    agent, _, parent = str(session["id"]).partition(".")
    if session.get("is_agent_session"):
        parent = str(session.get("parent_session_id") or parent).rpartition(".")[2]
        return f"{folder}/{safe_relative(parent)}/{locate.AGENTS}/{safe_relative(agent)}/{locate.WIRE}"
    return f"{folder}/{safe_relative(str(session['id']))}/{locate.STATE}"


def project_folder(session: Mapping[str, JSON]) -> str:
    """The name of the folder for the sessions of a project: the recorded one, else as the client makes it."""
    return safe_relative(session.get("workspace_encoded") or folder_name(str(session["workspace"])))


def folder_name(workspace: str) -> str:
    """The name that the client gives to the folder for the sessions of a project."""
    path = workspace.replace("\\", "/").rstrip("/")
    slug = _NOT_IN_SLUGS.sub("-", path.rpartition("/")[2].lower()).strip("-")[:_MAX_SLUG_CHARS].strip("-")
    slug = "workspace" if slug in ("", ".", "..") else slug
    return f"wd_{slug}_{hashlib.sha256(path.encode()).hexdigest()[:_HASH_CHARS]}"
