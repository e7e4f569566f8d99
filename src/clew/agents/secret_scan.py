"""Finds the secrets in a session: where each lies, by which rule, and the marker that would replace it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from clew.agents.base import Agent, SourceFile
from clew.agents.masking import learn_session
from clew.io.records import TOO_LONG
from clew.model.json import JSON
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

    def without_value(self) -> dict[str, JSON]:
        """All fields but the secret itself."""
        fields = self._asdict()
        del fields["value"]
        return fields


def find_secrets(agent: Agent, source: SourceFile, redactor: Redactor) -> Iterator[Secret]:
    """Find the secrets of a session. The redactor first learns from the whole session, and then knows its secrets."""
    learn_session(agent, source, redactor)
    for unit in agent.units(source):
        message = unit.value["index"] if unit.is_message else None
        if TOO_LONG in unit.findings:
            marker = Redactor(redactor.settings).mask_unscanned()
            yield Secret(message, unit.line, TOO_MANY_CANDIDATES, marker, "unread", 0.0, None)
            continue
        for text, finding in redactor.findings(unit.value):
            value = text[finding.start : finding.end]
            rule, marker = redactor.values.get(value, finding.rule), redactor.marker(value, finding.rule)
            yield Secret(message, unit.line, rule, marker, finding.kind, finding.confidence, value)
