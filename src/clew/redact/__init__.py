"""Redaction: what must not leave the machine is found, and replaced by a marker.

scan(text, profile)         findings of a text, sorted, without overlaps
scan_all(texts, profile)    those of many texts, short ones at the speed of one long one
redact(text, profile)       the text with markers
apply(text, findings)       the same, for findings at hand
Marker(key)                 makes `[REDACTED:rule:tag]`; Marker() makes `[REDACTED]`
Known(values)               values found once, to be found everywhere
load_rules(path)            the built-in rules with a user's own
"""

from __future__ import annotations

from clew.redact.findings import PROFILES, Finding, Profile, kinds_of
from clew.redact.known_values import Known
from clew.redact.masks import MARKER, PLAIN, Marker
from clew.redact.scan import apply, redact, scan, scan_all
from clew.redact.scanner import Rules, rules_version, standard
from clew.redact.user_rules import load_rules, parse_rules

__all__ = [
    "MARKER",
    "PLAIN",
    "PROFILES",
    "Finding",
    "Known",
    "Marker",
    "Profile",
    "Rules",
    "apply",
    "kinds_of",
    "load_rules",
    "parse_rules",
    "redact",
    "rules_version",
    "scan",
    "scan_all",
    "standard",
]
