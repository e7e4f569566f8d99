"""Finds the secrets in a session: where each lies, by which rule, and the marker that would replace it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from clew.agents.base import Agent, SourceFile
from clew.agents.masking import learn_session
from clew.io.records import TOO_LONG
from clew.model.json import JSON
from clew.redact.json_values import strings_of
from clew.redact.matcher import TOO_MANY_CANDIDATES
from clew.redact.redactor import Redactor


class Secret(NamedTuple):
    """One secret at one place."""

    message: int | None
    """The message it lies in; None for a record that is no message."""
    line: int
    rule: str
    masked: str
    kind: str
    confidence: float
    value: str | None
    """None for a record that is too long to be scanned, and would be masked whole."""
    block: int | None = None
    """The number of the block it lies in, from 1, if that is a tool result behind another one in the message."""

    def without_value(self) -> dict[str, JSON]:
        """Where it lies and what it is, without the secret itself."""
        fields = self._asdict()
        del fields["value"], fields["block"]
        return fields


def find_secrets(agent: Agent, source: SourceFile, redactor: Redactor) -> Iterator[Secret]:
    """Find the secrets of a session. The redactor first learns from the whole session, and then knows its secrets."""
    learn_session(agent, source, redactor, agent.facts(source))
    for unit in agent.units(source):
        message = unit.value["index"] if unit.is_message else None
        if TOO_LONG in unit.findings:
            marker = Redactor(redactor.settings).mask_unscanned()
            yield Secret(message, unit.line, TOO_MANY_CANDIDATES, marker, "unread", 0.0, None)
            continue
        for text, finding in redactor.findings(unit.value):
            value = text[finding.start : finding.end]
            rule, marker = redactor.values.get(value, finding.rule), redactor.marker(value, finding.rule)
            block = _later_result(unit.value["content"], text) if unit.is_message else None
            yield Secret(message, unit.line, rule, marker, finding.kind, finding.confidence, value, block)


def _later_result(content: Sequence[dict[str, JSON]], text: str) -> int | None:
    """The number of the block that holds a text, if it is a tool result and not the first of its message."""
    results = [number for number, block in enumerate(content, 1) if block["type"] == "tool_result"]
    for number, block in enumerate(content, 1):
        if text in strings_of(block):
            return number if number in results[1:] else None
    return None
