"""Findings of a scan, and the profiles that choose what is searched for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

from clew.errors import UsageError

Kind = Literal["secret", "pii", "path"]
Profile = Literal["none", "secrets", "pii", "paths", "all"]
"""What is searched for.

none      nothing
secrets   keys, tokens, passwords, private keys
pii       secrets, and cards, account, national and phone numbers, e-mail addresses
paths     secrets, and what names the person's machine: user names in paths, host names, private addresses
all       everything
"""

PROFILES: tuple[Profile, ...] = get_args(Profile)
_KINDS: dict[str, frozenset[str]] = {
    "none": frozenset(),
    "secrets": frozenset({"secret"}),
    "pii": frozenset({"secret", "pii"}),
    "paths": frozenset({"secret", "path"}),
    "all": frozenset({"secret", "pii", "path"}),
}


class Finding(NamedTuple):
    """A part of a text that must be masked. Offsets count characters; `end` is exclusive."""

    start: int
    end: int
    rule: str
    kind: str
    confidence: float


Spans = dict[str, list[Finding]]
"""Findings by the text that holds them."""


def kinds_of(profile: str) -> frozenset[str]:
    """Return the kinds of findings that a profile searches for."""
    try:
        return _KINDS[profile]
    except KeyError:
        raise UsageError(f"unknown redaction profile {profile!r}; known: {', '.join(PROFILES)}") from None


def masked_summary(masked: Mapping[str, int]) -> str:
    """How many values were masked, by rule; never which."""
    return ", ".join(f"{count} {rule}" for rule, count in sorted(masked.items()))
