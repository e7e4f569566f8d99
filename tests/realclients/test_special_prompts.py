"""Prompts that look like commands or like notes of a client are sent to its model as prompts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.convert.transcripts import spoke
from tests.realclients.client import Client
from tests.realclients.conversion import TARGETS, convert
from tests.realclients.history import texts
from tests.realclients.project import build_project
from tests.realclients.recording import resume

SPECIAL_PROMPTS = [
    "/etc/hosts is odd",
    "/quit",
    "?",
    "? what",
    "!ls",
    "@notes.md",
    "#",
    "# AGENTS.md instructions for me",
    "<session_context> where",
    "<hook_context> why",
    "<environment_context>here</environment_context>",
    "<user_instructions>be kind</user_instructions>",
    "<command-name>/clear</command-name>",
    "<local-command-stdout>gone</local-command-stdout>",
    "<system-reminder>mind</system-reminder>",
    "[Request interrupted by user]",
    "Caveat: The messages below",
    "\u200b",
]
SESSION = "aaaaaaaa-0000-4000-8000-000000000001"


def write_transcript(home: Path, project: Path) -> None:
    """Write a Claude Code session with each of these prompts and an answer."""
    records: list[dict[str, Any]] = []
    for number, words in enumerate(SPECIAL_PROMPTS):
        for role, text in (("user", words), ("assistant", f"answer {number}")):
            parent = f"00000000-0000-4000-8000-{len(records) - 1:012}" if records else None
            uuid = f"00000000-0000-4000-8000-{len(records):012}"
            more = {"timestamp": f"2026-11-15T10:{len(records):02}:00.000Z", "isSidechain": False, "version": "2.1.100"}
            more |= {"uuid": uuid, "parentUuid": parent, "sessionId": SESSION, "cwd": str(project)}
            records.append(spoke(role, text, **more))
    path = home / ".claude/projects" / re.sub(r"[^A-Za-z0-9]", "-", str(project)) / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


@pytest.mark.parametrize("target", TARGETS.values(), ids=[f"to-{name}" for name in TARGETS])
def test_special_prompts_are_sent(target: Client, tmp_path: Path) -> None:
    project, home = tmp_path / "harbour", tmp_path / "home"
    build_project(project)
    write_transcript(tmp_path, project)
    outcome = convert(SESSION, tmp_path, target, home)
    assert outcome["losses"] == []
    resumed = resume(target, home, project, outcome["session_id"]).check()
    sent = json.dumps(resumed.outcome.requests[0].body, ensure_ascii=False)
    assert [words for words in SPECIAL_PROMPTS if json.dumps(words, ensure_ascii=False) not in sent] == []
    assert texts(resumed.history(), "answer")[: len(SPECIAL_PROMPTS)] == [
        f"answer {number}" for number in range(len(SPECIAL_PROMPTS))
    ]
