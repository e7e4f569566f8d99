"""The labelled set beside the checkout: in lines of a transcript, and in every artefact."""

from __future__ import annotations

import json
from functools import partial
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from clew.redact.masks import MARKER, Marker
from clew.redact.native_files import mask_file
from clew.redact.redactor import MaskSettings, Redactor
from tests.cli.running import clew
from tests.redact.planted import forms
from tests.redact.scoring import SECRETS_GENERATOR, load_generator, mask_lines, score

IDS = ("type", "uuid", "parentUuid", "sessionId", "cwd", "version", "timestamp")


@pytest.fixture(scope="module")
def maker(shared: Path) -> ModuleType:
    """The generator of the set."""
    return load_generator(shared / SECRETS_GENERATOR)


def wrapped(maker: ModuleType, seed: int, negatives: int = 61) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The records of a set, each with the line of a transcript that holds its text."""
    records = maker.generate(seed, 1, 1, negatives)
    return [(record, maker.wrap_claude(record, seed)["line"]) for record in records]


def test_RD02_lines_keep_their_keys_ids_and_order(maker: ModuleType) -> None:
    pairs = wrapped(maker, 3)
    lines = [json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() for _, line in pairs]
    text = b"\n".join(lines) + b"\n"
    redactor = Redactor(MaskSettings("pii", Marker(b"key")))
    masked = b"".join(mask_file(partial(BytesIO, text), redactor)).splitlines()
    assert len(masked) == len(lines)
    for (record, line), old, new in zip(pairs, lines, masked, strict=True):
        found = json.loads(new)
        assert list(found) == list(line)
        assert {name: found[name] for name in IDS} == {name: line[name] for name in IDS}
        assert shape(found) == shape(line)
        if record["label"] == "negative":
            assert new == old, record["id"]
        else:
            assert MARKER.search(new.decode()), record["id"]


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: value[key] if key.endswith("_id") else shape(value[key]) for key in value}
    return [shape(item) for item in value] if isinstance(value, list) else type(value)


def planted(record: dict[str, Any]) -> list[str]:
    return [record["text"][span["start"] : span["end"]] for span in record["spans"]]


def survivors(content: bytes, pairs: list[tuple[dict[str, Any], dict[str, Any]]]) -> list[str]:
    """The records whose planted value some bytes still hold, in any form that is long enough to tell."""
    return [
        record["id"]
        for record, _ in pairs
        for value in planted(record)
        if any(form in content for form in forms(value) if len(form) >= 10)
    ]


def test_RD03_nothing_of_the_set_survives_in_any_artefact(maker: ModuleType, tmp_path: Path) -> None:
    pairs = [(record, line) for record, line in wrapped(maker, 5, 0)]
    session = "0b0e2d8c-5a0f-4a5e-9d53-0d5a4f3c2b11"
    path = tmp_path / "home" / ".claude" / "projects" / "-home-dev-app" / f"{session}.jsonl"
    path.parent.mkdir(parents=True)
    last = None
    with path.open("w", encoding="utf-8") as out:
        for _, line in pairs:
            line |= {"sessionId": session, "parentUuid": last}
            last = line["uuid"]
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
    assert len(survivors(path.read_bytes(), pairs)) > len(pairs) * 0.9
    home = ("--home", tmp_path / "home")
    for words in (
        ("export", session, "--redact", "pii"),
        ("export", session, "--to", "markdown", "--redact", "pii"),
        ("show", session, "--detail", "full", "--redact", "pii"),
        ("show", session, "--json", "--redact", "pii"),
        ("show", session, "--raw", "--redact", "pii"),
        ("list", "--redact", "pii"),
        ("graph", session, "--redact", "pii"),
        ("redact", "scan", session, "--json", "--redact", "pii"),
        ("redact", path, "--redact", "pii"),
    ):
        done = clew(*home, *words)
        assert done.code in (0, 1), done.err
        assert survivors(done.raw, pairs) == [], words
        assert survivors(done.err.encode(), pairs) == [], words
    for agent in ("codex", "gemini", "sage-agent", "claude-code"):
        target = tmp_path / agent
        done = clew(*home, "convert", session, "--to", agent, "--home", target, "--allow-loss", "--redact", "pii")
        assert done.code == 0, done.err
        assert survivors(b"".join(file.read_bytes() for file in target.rglob("*") if file.is_file()), pairs) == []


@pytest.mark.parametrize("seed", [1, 11, 20])
def test_RD01_the_set_within_lines_of_a_transcript(maker: ModuleType, seed: int) -> None:
    pairs = wrapped(maker, seed)
    done = mask_lines([line for _, line in pairs])
    result = score([record for record, _ in pairs], done.spans, done.seconds)
    assert (done.broken, done.touched) == (0, 0)
    assert (result.recall("secret"), result.recall("pii"), result.precision()) == (100, 100, 100)
