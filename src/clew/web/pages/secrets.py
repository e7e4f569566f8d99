"""Secrets in sessions: rule, place and marker of each; never the value."""

from __future__ import annotations

from collections import Counter
from typing import Any

from starlette.responses import Response

from clew.catalog.ids import session_key
from clew.web.context import masking, masking_options
from clew.web.request import PageRequest, respond
from clew.web.templates import session_name_of, session_url_of

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
        findings=[_finding_row(finding) for finding in chosen[first : first + FINDINGS_PER_PAGE]],
        page_number=page_number,
        pages=max(1, -(-len(chosen) // FINDINGS_PER_PAGE)),
    )


def _finding_row(finding: dict[str, Any]) -> dict[str, Any]:
    """A finding with the name of its session, and its address: of the tool result, where a message has several."""
    agent, session = finding["agent"], finding["session"]
    mask = masking("secrets").text
    url = session_url_of(agent, session, session_key(agent, session), finding["message"])
    url += f"-{finding['block']}" if finding["block"] is not None else ""
    return {**finding, "name": session_name_of(finding["title"], session, mask), "url": url}
