"""Redaction: finds secrets, personal data and machine names, and replaces them by markers.

scan(text, profile)         find what must be masked in a text
scan_all(texts, profile)    scan many texts at once
redact(text, profile)       replace findings by markers
apply(text, findings)       replace given findings by markers
Marker(key)                 makes `[REDACTED:rule:tag]`; Marker() makes `[REDACTED]`
Known(values)               values to be found in every spelling
load_rules(path)            the built-in rules with a user's own
"""

from __future__ import annotations

from clew.redact.findings import PROFILES, Finding, Profile, kinds_of
from clew.redact.known_values import Known
from clew.redact.masks import MARKER, PLAIN, Marker
from clew.redact.scanner import Rules, apply, redact, rules_version, scan, scan_all, standard
from clew.redact.settings import load_rules, parse_rules

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
