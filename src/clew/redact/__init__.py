"""Redaction: finds secrets, personal data and machine names, and replaces them by markers.

scan(text, profile)         find what must be masked in a text
scan_all(texts, profile)    scan many texts at once
redact(text, profile)       replace findings by markers
apply(text, findings)       replace given findings by markers
Marker(key)                 makes `[REDACTED:rule:tag]`; Marker() makes `[REDACTED]`
KnownValues(values)         values to be found in every spelling
load_rules(path)            the built-in rules with a user's own
"""

from __future__ import annotations

from clew.redact.findings import PROFILES, Finding, Profile, kinds_of
from clew.redact.known_values import KnownValues
from clew.redact.masks import MARKER, PLAIN, Marker
from clew.redact.scanner import Rules, apply, default_rules, redact, rules_version, scan, scan_all
from clew.redact.settings import load_rules, parse_rules

__all__ = [
    "MARKER",
    "PLAIN",
    "PROFILES",
    "Finding",
    "KnownValues",
    "Marker",
    "Profile",
    "Rules",
    "apply",
    "default_rules",
    "kinds_of",
    "load_rules",
    "parse_rules",
    "redact",
    "rules_version",
    "scan",
    "scan_all",
]
