"""Where secrets lie: the rule and the place, with the marker that would stand there; never the value."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from clew.catalog.ids import session_key
from clew.web.asking import Asked, page
from clew.web.drawing import session_address

SHOWN = 100


def page_of(asked: Asked) -> Response:
    """The page; the first visit begins the look."""
    scan = asked.shelf.scan
    scan.start(again=asked.word("again") is not None and not asked.is_fragment)
    findings = scan.findings or []
    rule = asked.word("rule")
    counts: dict[str, int] = {}
    for finding in findings:
        counts[finding["rule"]] = counts.get(finding["rule"], 0) + 1
    chosen = [finding for finding in findings if rule is None or finding["rule"] == rule]
    at = max(1, asked.number("page", 1))
    return page(
        asked,
        "secrets.html" if not asked.is_fragment else "findings.html",
        is_running=scan.is_running,
        is_known=scan.findings is not None,
        has_failed=scan.has_failed,
        total=len(chosen),
        rules=sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])),
        rule=rule,
        findings=[_placed(finding) for finding in chosen[(at - 1) * SHOWN : at * SHOWN]],
        at=at,
        pages=max(1, -(-len(chosen) // SHOWN)),
    )


def _placed(finding: dict[str, Any]) -> dict[str, Any]:
    key = session_key(finding["agent"], finding["session"])
    return {**finding, "address": session_address(finding["agent"], finding["session"], key, finding["message"])}
