"""Secrets in sessions: rule, place and marker of each; never the value."""

from __future__ import annotations

from collections import Counter
from typing import Any

from starlette.responses import Response

from clew.catalog.ids import session_key
from clew.web.context import masking_options
from clew.web.request import PageRequest, respond
from clew.web.templates import session_url_of

FINDINGS_PER_PAGE = 100


def view(request: PageRequest) -> Response:
    """The page; the first visit starts the scan."""
    scan, options = request.context.scan, masking_options()
    again = request.param("again") is not None and not request.is_fragment
    scan.start(plain=options.plain, rules=options.rules, again=again)
    findings = scan.findings or []
    rule = request.param("rule")
    counts = Counter(finding["rule"] for finding in findings)
    chosen = [finding for finding in findings if rule is None or finding["rule"] == rule]
    page_number = max(1, request.number("page", 1))
    first = (page_number - 1) * FINDINGS_PER_PAGE
    return respond(
        request,
        "secrets.html" if not request.is_fragment else "findings.html",
        is_running=scan.is_running,
        is_known=scan.findings is not None,
        has_failed=scan.has_failed,
        total=len(chosen),
        rules=sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])),
        rule=rule,
        findings=[_with_url(finding) for finding in chosen[first : first + FINDINGS_PER_PAGE]],
        page_number=page_number,
        pages=max(1, -(-len(chosen) // FINDINGS_PER_PAGE)),
    )


def _with_url(finding: dict[str, Any]) -> dict[str, Any]:
    key = session_key(finding["agent"], finding["session"])
    return {**finding, "url": session_url_of(finding["agent"], finding["session"], key, finding["message"])}
