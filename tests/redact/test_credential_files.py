"""What a credential file holds is masked wherever an agent writes it down, whatever it looks like."""

from __future__ import annotations

import base64
import json
from functools import partial
from io import BytesIO

import pytest

from clew.model.json import JSON
from clew.redact import Marker
from clew.redact.credential_files import read_by
from clew.redact.native_files import mask_file
from clew.redact.redactor import MaskSettings, Redactor
from clew.redact.scanner import redact

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
    redactor = Redactor(MaskSettings("secrets", Marker()))
    redactor.learn(records)
    masked = [redactor.value(record) for record in records]
    assert WORD not in json.dumps(masked)
    lines = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    native = b"".join(mask_file(partial(BytesIO, lines), Redactor(MaskSettings("secrets", Marker()))))
    assert [json.loads(line) for line in native.splitlines()] == masked
    # Of a patch, only the part that changes the credential file.
    assert ("greeting = welcomed" in json.dumps(masked)) == ("patch" in name)


def test_a_text_that_only_speaks_of_files_stays() -> None:
    record: JSON = {"text": "Add File: .env, or DB_PASS" + "WORD=your-password File: .env\nGREETING=welcomed"}
    assert Redactor(MaskSettings("secrets", Marker())).learn_and_mask(record) == record


TEXTS = {
    ".env": [f'A="first line\n{WORD}"', f'A="{WORD}', f"A='{WORD}"],
    ".pgpass": [f"db.host:5432:shop:ada:{WORD}"],
    ".htpasswd": [f"ada:{WORD}"],
    ".netrc": [f"machine h login ada password {WORD}", f"machine h\n  login ada\n  password {WORD}\n"],
    "secrets.yaml": [f"names:\n  - {WORD}\n", f"name: |\n  {WORD}\n", f'names: ["x", "{WORD}"]\n'],
    "secrets.toml": [f'names = ["{WORD}"]\n', f'names = [\n  "{WORD}",\n]\n'],
    "credentials.json": [json.dumps({"alpha": f'ab"{WORD}'}), json.dumps(json.dumps({"alpha": f'ab"{WORD}'}))],
}


@pytest.mark.parametrize(("path", "text"), [(path, text) for path, texts in TEXTS.items() for text in texts])
def test_every_value_of_a_credential_file_is_masked_whole(path: str, text: str) -> None:
    record: JSON = {"tool": {"input": {"file_path": path, "content": text}}}
    for masked in (
        redact(text, path=path),
        json.dumps(Redactor(MaskSettings("secrets", Marker())).learn_and_mask(record)),
    ):
        assert "REDACTED" in masked
        assert "harbour" not in masked and "tangerine" not in masked
    native = b"".join(mask_file(partial(BytesIO, text.encode()), Redactor(MaskSettings("secrets", Marker())), path))
    assert b"harbour" not in native and b"tangerine" not in native


def test_a_program_is_known_by_its_full_path_too() -> None:
    assert read_by("/bin/cat .env") == ".env"
    assert read_by("sudo /usr/bin/head -n 1 .env") == ".env"


SECRET_MANIFESTS = [
    "apiVersion: v1\ndata:\n  config: {base64}\nkind: Secret\n",
    '{{"apiVersion":"v1","data":{{"config":"{base64}"}},"kind":"Secret"}}',
    "kind: Secret\nstringData:\n  config: {plain}\ntype: Opaque\n",
    "stringData:\n  config: |\n    {plain}\nkind: Secret\n",
    '{{"kind":"Secret","stringData":{{"config":"{plain}"}}}}',
]


@pytest.mark.parametrize("form", SECRET_MANIFESTS)
def test_values_of_a_kubernetes_secret_are_masked_wherever_its_kind_is(form: str) -> None:
    text = form.format(base64=base64.b64encode(WORD.encode()).decode(), plain=WORD)
    masked = redact(text)
    assert WORD not in masked and base64.b64encode(WORD.encode()).decode() not in masked
    assert "config" in masked and "Secret" in masked
    other = text.replace("Secret", "ConfigMap")
    assert redact(other) == other
