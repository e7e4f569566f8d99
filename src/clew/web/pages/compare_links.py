"""Addresses of comparisons of sessions and of branches."""

from __future__ import annotations

from markupsafe import Markup

from clew.catalog.queries import Entry
from clew.render.page.session import Contents
from clew.web.templates import link, public_id

MAX_COMPARISONS = 100


def reference_of(entry: Entry, branch: int | None = None) -> str:
    """How an address names a session or a branch of it."""
    return f"{entry.agent}:{public_id(entry.id, entry.key)}" + (f"@{branch}" if branch is not None else "")


def branch_comparisons(entry: Entry, contents: Contents, profile: str) -> list[tuple[str, Markup]]:
    """For each fork, the comparisons of its branches with the one that the conversation continued with."""
    found = []
    for _, fork in contents.forks:
        current = next((branch for branch in fork.branches if branch.is_active), fork.branches[-1])
        for branch in fork.branches:
            if branch is not current:
                left, right = reference_of(entry, branch.index), reference_of(entry, current.index)
                label = f"Messages from {branch.index} with those from {current.index}"
                found.append((label, link("/compare", profile, left=left, right=right)))
    return found[:MAX_COMPARISONS]
