"""Ordinary sessions: however long they are, nothing in them is masked for having too many candidates."""

from __future__ import annotations

import json
import random
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from clew.agents.base import Agent
from clew.agents.source import SourceFile, with_current_size
from clew.model.json import JSON
from clew.redact import Marker
from clew.redact.json_text import splice
from clew.redact.native_files import mask_file
from clew.redact.redactor import MaskSettings, Redactor
from clew.sources.local import at_path
from tests.redact.planted import Planter

PLANT = Planter("ordinary")
_NOUNS = "order invoice basket customer parser reader window session branch commit index table buffer queue".split()
_VERBS = "load store check merge split count render follow open close print sort".split()


def _line(chance: random.Random) -> str:
    noun, verb = chance.choice(_NOUNS), chance.choice(_VERBS)
    return chance.choice(
        [
            f"def {verb}_{noun}(self, {noun}: str, limit: int = {chance.randrange(99)}) -> None:",
            f"    {noun} = self.{verb}({noun}, key=lambda each: each.{verb}ed)",
            f"    if {noun} == {noun}.{verb}: return {noun}",
            f'    parser.add_argument("--{noun}", help="the {noun} to {verb}")',
            f"    {noun}[{chance.randrange(9)}] += {chance.random():.3f}  # {verb} it",
            f"    return {{ {noun!r}: {verb}({noun}), 'limit': {chance.randrange(999)} }}",
        ]
    )


def _lines_of_code(chance: random.Random) -> str:
    """A file as it is shown in a session: functions, assignments, and the name of a secret without one."""
    lines = [_line(chance) for _ in range(chance.randrange(10, 60))]
    name = chance.choice(["    token=", "    password = os.environ.get(name)", "    if token == other.token:"])
    return "\n".join([*lines, name, _line(chance)])


def _message(chance: random.Random, number: int) -> dict[str, JSON]:
    """A message of a session: a call about a file below a home, and what came of it."""
    path = f"/home/mara/src/shop/{chance.choice(_NOUNS)}/{chance.choice(_VERBS)}_{chance.choice(_NOUNS)}.py"
    return {
        "index": number,
        "uuid": f"{number:08x}-0000-4000-8000-000000000000",
        "timestamp": f"2026-03-{1 + number % 28:02}T10:00:{number % 60:02}.000Z",
        "cwd": "/home/mara/src/shop",
        "usage": {"input_tokens": number, "output_tokens": 3 * number},
        "content": [
            {"type": "text", "text": f"I will {chance.choice(_VERBS)} the {chance.choice(_NOUNS)} of `{path}`."},
            {"type": "tool_use", "id": f"toolu_{number:06}", "name": "Edit", "input": {"file_path": path}},
            {"type": "text", "text": f"{path}:\n{_lines_of_code(chance)}"},
        ],
    }


def _session(also: dict[str, JSON]) -> list[dict[str, JSON]]:
    chance = random.Random(11)
    return [_message(chance, number) | also for number in range(2000)]


def _hidden_in_values(values: list[Any], profile: str) -> int:
    """How much is masked without being checked of values that are learned from, then masked."""
    redactor = Redactor(MaskSettings(profile, Marker(b"k")))
    redactor.learn(values)
    masked = [json.dumps(redactor.value(value)) for value in values]
    return redactor.masked["too_many_candidates"] + sum(text.count("REDACTED:too_many_candidates") for text in masked)


def _hidden_in_file(content: bytes, profile: str) -> int:
    """The same of a file."""
    redactor = Redactor(MaskSettings(profile, Marker(b"k")))
    masked = b"".join(mask_file(partial(BytesIO, content), redactor))
    return redactor.masked["too_many_candidates"] + masked.count(b"REDACTED:too_many_candidates")


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["secrets", "all"])
@pytest.mark.parametrize(
    "also",
    [
        {},
        {"author": "Mara Lind <mara.lind@lindwerk.de>"},
        {"env": f"GITHUB_TOKEN={PLANT.github()}", "author": "mara.lind@lindwerk.de"},
    ],
    ids=["code", "with a known address", "with a known key"],
)
def test_RD09_nothing_of_a_long_ordinary_session_is_hidden(profile: str, also: dict[str, JSON]) -> None:
    values = _session(also)
    assert _hidden_in_values(values, profile) == 0
    assert _hidden_in_file("".join(json.dumps(value) + "\n" for value in values).encode(), profile) == 0


def _messages(agent: Agent, source: SourceFile) -> list[Any]:
    frozen = with_current_size(source)
    return [unit.value for unit in agent.units(frozen)]


@pytest.mark.parametrize("profile", ["secrets", "all"])
@pytest.mark.parametrize("agent", ["claude-code", "codex", "gemini"])
def test_RD09_nothing_of_real_sessions_is_hidden(shared: Path, agent: str, profile: str) -> None:
    folder = shared / "corpus" / agent
    if not folder.is_dir():
        pytest.skip(f"no sessions of {agent} in the folder `shared` beside the checkout")
    hidden = {}
    for reader, source in at_path(folder):
        found = _hidden_in_values(_messages(reader, source), profile)
        hidden[source.path.name] = found + _hidden_in_file(source.path.read_bytes(), profile)
    assert hidden
    assert not {name for name, count in hidden.items() if count}


def test_a_value_that_only_names_a_home_keeps_its_names_and_numbers() -> None:
    homes: dict[str, Any] = {"/home/mara/a.py": 1, "/home/lind/a.py": 2, "list": [None, 1.5, "/home/mara/b"]}
    redactor = Redactor(MaskSettings("all", Marker()))
    masked: Any = redactor.learn_and_mask(homes)
    assert list(masked.values())[:2] == [1, 2]
    assert "mara" not in json.dumps(masked)
    assert "lind" not in json.dumps(masked)
    odd: Any = redactor.learn_and_mask({"cwd": "/home/mara/src", "n": float("nan")})
    assert odd["n"] != odd["n"]
    assert "mara" not in odd["cwd"]


def test_a_long_text_without_escapes_is_changed_like_a_short_one() -> None:
    changes = {"Tangerine42": '[a "b"]', "x,y": "z", "é1x": "ü"}
    record = {"a": ["Tangerine42", "x,y", "é1x", "Tangerine42!", ",", 7], "Tangerine42": {"b": "x,y"}}
    for raw in (json.dumps(record, ensure_ascii=False), json.dumps(record, ensure_ascii=False, indent=1)):
        long = f"[{raw}, {json.dumps('calm ' * 8000)}]"
        assert json.loads(splice(long, changes))[0] == json.loads(splice(raw, changes))
        assert json.loads(splice(long, changes | {",": ";"}))[0] == json.loads(splice(raw, changes | {",": ";"}))
