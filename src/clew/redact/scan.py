"""Texts in, findings or redacted texts out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from clew.redact.findings import Finding, kinds_of
from clew.redact.known_values import Known
from clew.redact.masks import PLAIN
from clew.redact.scanner import Rules, standard

Mark = Callable[[str, str], str]
_SHORTEST = 8


def scan(
    text: str,
    profile: str = "secrets",
    *,
    path: str | None = None,
    rules: Rules | None = None,
    known: Known | None = None,
) -> list[Finding]:
    """What must be hidden in a text: sorted, without overlaps.

    `path` is the file the text was read from, if it was; `rules` adds a user's rules and exceptions; `known` are values
    found before, which are found here in every spelling.
    """
    kinds = kinds_of(profile)
    if not kinds or len(text) < _SHORTEST:
        return []
    chosen = standard() if rules is None else rules
    return chosen.findings([text], kinds, known=known, paths={0: path} if path else None).get(0, [])


def redact(
    text: str,
    profile: str = "secrets",
    *,
    mark: Mark | None = None,
    path: str | None = None,
    rules: Rules | None = None,
    known: Known | None = None,
) -> str:
    """The text with a marker in place of each finding; without `mark`, the plain one."""
    return apply(text, scan(text, profile, path=path, rules=rules, known=known), mark)


def apply(text: str, findings: Iterable[Finding], mark: Mark | None = None) -> str:
    """The text with a marker in place of each of the findings, which are sorted and do not overlap."""
    pieces, last = [], 0
    for finding in findings:
        value = text[finding.start : finding.end]
        pieces += [text[last : finding.start], PLAIN if mark is None else mark(value, finding.rule)]
        last = finding.end
    return "".join([*pieces, text[last:]])


def scan_all(
    texts: Sequence[str], profile: str = "secrets", *, rules: Rules | None = None, known: Known | None = None
) -> dict[int, list[Finding]]:
    """The findings of those of many texts that have any, by number. Short texts cost no more than one long one."""
    kinds = kinds_of(profile)
    if not kinds or not texts:
        return {}
    chosen = standard() if rules is None else rules
    return chosen.findings(texts, kinds, known=known)
