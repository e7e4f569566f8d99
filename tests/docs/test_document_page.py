"""docs/reference/document.md: its example is what clew writes, and it names every field there is."""

import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clew import verify
from clew.agents import registry
from clew.analysis.session import Derived
from clew.export.document import write_document
from clew.model import (
    Document,
    DocumentBlock,
    ForkBranch,
    ForkPoint,
    Graph,
    Image,
    Message,
    Metadata,
    ModelUse,
    Native,
    NativeFile,
    Problem,
    Record,
    Session,
    Snapshot,
    Source,
    SourceRef,
    Subagent,
    Text,
    Thinking,
    ThinkingSettings,
    Todo,
    TokenUsage,
    ToolResult,
    ToolUse,
    TrackedFile,
    Unknown,
)
from tests.docs.pages import ROOT, Fence, fences

PAGE = (ROOT / "docs" / "reference" / "document.md").read_text(encoding="utf-8")
WORDS = [Document, Session, Source, Subagent, Message, Metadata, ModelUse, ThinkingSettings, Todo, TokenUsage]
WORDS += [Native, NativeFile, Problem, SourceRef, Record, Snapshot, TrackedFile, Graph, ForkPoint, ForkBranch]
BLOCKS = [Text, Thinking, ToolUse, ToolResult, Image, DocumentBlock, Unknown]


def block(kind: str) -> Fence:
    return next(fence for fence in fences(PAGE) if fence.kind == kind)


def test_the_example_is_what_clew_writes(tmp_path: Path) -> None:
    native = block("jsonl")
    path = tmp_path / native.title.removeprefix("~/")
    path.parent.mkdir(parents=True)
    path.write_text(native.text, encoding="utf-8")
    agent = registry.get("claude-code")
    text = io.BytesIO()
    write_document(agent, agent.locate(path), text, timestamp="2026-11-15T12:00:00Z")
    written: dict[str, Any] = json.loads(text.getvalue().replace(str(tmp_path).encode(), b"~"))
    [file] = written.pop("native")["files"]
    assert file["records"] == [json.loads(line) for line in native.text.splitlines()]
    assert written == json.loads(block("json").text)
    assert verify(agent, agent.locate(path)).holds


@pytest.mark.parametrize("part", [*WORDS, *BLOCKS], ids=lambda part: part.__name__)
def test_every_field_is_named(part: type[msgspec.Struct]) -> None:
    missing = [field.encode_name for field in msgspec.structs.fields(part) if f"`{field.encode_name}`" not in PAGE]
    assert missing == []


@pytest.mark.parametrize("part", BLOCKS, ids=lambda part: part.__name__)
def test_every_kind_of_block_is_named(part: type[msgspec.Struct]) -> None:
    assert f"| `{part.__struct_config__.tag}` |" in PAGE


def test_derived_figures_are_named() -> None:
    figures = {"turn_count", "prompt_count", "total_tokens", "cache_hit_rate", "project", "has_errors"}
    assert figures <= {field.name for field in msgspec.structs.fields(Derived)}
    assert all(f"`{name}`" in PAGE for name in figures)
