"""What a credential file holds is masked wherever an agent writes it down, whatever it looks like."""

from __future__ import annotations

import json
from functools import partial
from io import BytesIO

import pytest

from clew.model.json import JSON
from clew.redact import Marker
from clew.redact.native_files import mask_file
from clew.redact.redactor import Redactor, Setting

WORD = "tangerine" + "harbour"
ENV = f"GREETING={WORD}\nMODE=dev\n"
ADDED = f"*** Add File: .env\n+GREETING={WORD}\n"
PATCH = f"*** Begin Patch\n{ADDED}*** Update File: app.py\n+greeting = welcomed\n*** End Patch"
CALL: JSON = {"message": {"content": [{"type": "tool_use", "id": "toolu_1", "input": {"command": "cat .env"}}]}}
ANSWER: JSON = {"message": {"content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "see beside"}]}}
SESSIONS: dict[str, list[JSON]] = {
    "a result beside its message": [CALL, {**ANSWER, "toolUseResult": {"stdout": ENV, "stderr": ""}}],
    "a result that is a text": [CALL, {**ANSWER, "toolUseResult": ENV}],
    "a result in a unified message": [
        {"content": CALL["message"]["content"]},
        {
            "content": ANSWER["message"]["content"],
            "extensions": {"claude-code": {"rest": {"toolUseResult": {"stdout": ENV}}}},
        },
    ],
    "progress": [CALL, {"type": "progress", "toolUseID": "toolu_1", "data": {"output": ENV, "fullOutput": ENV}}],
    "progress of a call below": [CALL, {"type": "progress", "parentToolUseID": "toolu_1", "data": {"output": ENV}}],
    "a patch": [{"payload": {"type": "custom_tool_call", "name": "apply_patch", "call_id": "c1", "input": PATCH}}],
    "a patch in arguments": [{"payload": {"arguments": json.dumps({"command": ["apply_patch", PATCH]})}}],
    "a patch in a command": [{"input": {"cmd": f"apply_patch <<'EOF'\n{PATCH}\nEOF"}}],
}


@pytest.mark.parametrize("name", SESSIONS)
def test_what_a_credential_file_holds_is_masked(name: str) -> None:
    records = SESSIONS[name]
    redactor = Redactor(Setting("secrets", Marker()))
    redactor.learn(records)
    masked = [redactor.value(record) for record in records]
    assert WORD not in json.dumps(masked)
    lines = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    native = b"".join(mask_file(partial(BytesIO, lines), Redactor(Setting("secrets", Marker()))))
    assert [json.loads(line) for line in native.splitlines()] == masked
    # Of a patch, only the part that changes the credential file.
    assert ("greeting = welcomed" in json.dumps(masked)) == ("patch" in name)


def test_a_text_that_only_speaks_of_files_stays() -> None:
    record: JSON = {"text": "Add File: .env, or DB_PASS" + "WORD=your-password File: .env\nGREETING=welcomed"}
    assert Redactor(Setting("secrets", Marker())).learn_and_mask(record) == record
