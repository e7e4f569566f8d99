"""Whatever JSON stands in a record of Claude Code, it is decoded, and the file comes back byte for byte."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.base import SourceFile
from clew.agents.claude_code import ClaudeCode
from clew.export.verify import verify
from clew.model import Message, Record
from clew.model.json import JSON
from tests.json_values import records, spell, words

from .test_bytes import files

AGENT = ClaudeCode()
KEYS = words(
    "type uuid parentUuid logicalParentUuid sessionId timestamp message role content id model usage input_tokens "
    "output_tokens cache_creation isSidechain isMeta cwd gitBranch version toolUseResult agentId text thinking "
    "signature tool_use_id name input source media_type data url attachment prompt operation snapshot "
    "trackedFileBackups subtype leafUuid summary customTitle aiTitle todos status isCompactSummary"
)
TEXTS = words(
    "user assistant system attachment summary queue-operation file-history-snapshot progress last-prompt custom-title "
    "text thinking tool_use tool_result image document base64 url enqueue remove"
)


def prove(raw: bytes, folder: Path) -> None:
    path = folder / "11111111-1111-4111-8111-111111111111.jsonl"
    path.write_bytes(raw)
    source = SourceFile("claude-code", path)
    assert verify(AGENT, source).different == []
    for unit in AGENT.units(source):
        msgspec.convert(unit.value, Message if unit.is_message else Record)
    facts = AGENT.facts(source)
    msgspec.json.encode(AGENT.session(source, facts))
    assert facts.messages == sum(unit.is_message for unit in AGENT.units(source))


@pytest.mark.slow
@given(st.lists(st.tuples(records(KEYS, TEXTS), st.integers(0, 15)), min_size=1, max_size=5))
@pytest.mark.seed("S2-3")
def test_arbitrary_records_come_back(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[dict[str, JSON], int]]
) -> None:
    prove(b"".join(spell(*line) for line in lines), tmp_path_factory.mktemp("records"))


@pytest.mark.slow
@given(files())
def test_arbitrary_files_come_back(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    prove(raw, tmp_path_factory.mktemp("files"))
