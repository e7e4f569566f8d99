"""Jinja templates. Every string put into one is masked, made visible and escaped, unless it is HTML of our own."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from clew.catalog.queries import Entry
from clew.catalog.stats import Row, UsageTotals
from clew.model.time import from_microseconds
from clew.render.page.frame import theme, views
from clew.render.shell import shell_word
from clew.render.tables import ago, duration, short_project, size, time_range
from clew.render.text_safety import escape as escape_text
from clew.render.text_safety import visible
from clew.timezone import format_minute, zone_label
from clew.web.app import IMPORTED_MODULES, STYLE_SHEETS, static_url
from clew.web.context import masking
from clew.web.keys import KEYS

PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
UUID = re.compile(r"(?:agent-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NANO_PER_DOLLAR = 10**9
ID_CHARS = 16
"""Of the id of a session without a title."""
FIRST_TEMPLATES = frozenset({"base.html", "home.html", "session.html", "sessions.html"})


def render(template: str, profile: str, **values: object) -> str:
    """Render a template, masked by a profile."""
    return _environment(profile).get_template(template).render(**values)


def compile_templates(profile: str) -> None:
    """Compile all templates, those of the usual first pages first."""
    environment = _environment(profile)
    for template in sorted(environment.list_templates(), key=lambda name: (name not in FIRST_TEMPLATES, name)):
        environment.get_template(template)


@lru_cache
def _environment(profile: str) -> Environment:
    mask = masking(profile).text

    def mask_and_show(value: Any) -> Any:
        """Mask a string and spell out its invisible characters; Jinja escapes it afterwards."""
        if value is None:
            return ""
        return visible(mask(value)) if type(value) is str else value

    environment = Environment(
        loader=PackageLoader("clew.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=mask_and_show,
    )
    environment.filters |= {
        "number": format_number,
        "cost": format_row_cost,
        "clock": format_clock,
        "span": format_duration,
        "short_project": short_project,
        "size": size,
        "address": session_url,
        "highlight": highlight,
        "name": lambda entry: session_name(entry, mask),
    }
    environment.globals |= {
        "age": format_age,
        "time_range": lambda first, last: time_range(from_microseconds(first), from_microseconds(last)),
        "zone_label": zone_label,
        "cost_of": format_cost,
        "static": static_url,
        "imported_modules": IMPORTED_MODULES,
        "style_sheets": STYLE_SHEETS,
        "quoted": shell_word,
        "shortcuts": KEYS,
        "link": lambda path, /, **params: link(path, profile, **params),
        "theme": lambda chosen: Markup(theme(chosen)),
        "choices": lambda chosen: Markup(views("full", chosen)),
    }
    return environment


def format_number(value: int | None) -> str:
    """An exact number; empty if it is unknown."""
    return "" if value is None else f"{value:,}"


def format_money(nano: int | None) -> str:
    """Dollars; amounts below one dollar have four digits."""
    if nano is None:
        return ""
    dollars = nano / NANO_PER_DOLLAR
    return f"${dollars:,.2f}" if dollars >= 1 or not nano else f"${dollars:.4f}"


def format_cost(used: UsageTotals) -> str:
    """The cost of some calls; empty if there are none."""
    return format_row_cost(used.as_row()) if used.calls else ""


def format_row_cost(row: Row) -> str:
    """The cost in a row of usage; a lower bound if some calls have no known price, "unknown" if none has."""
    if row["cost_nano"] is None:
        return "unknown"
    return ("≥ " if row["cost_is_at_least"] else "") + format_money(row["cost_nano"])


def format_clock(microseconds: int) -> str:
    """A point in time to the minute, in the zone of the user."""
    return format_minute(from_microseconds(microseconds)) if microseconds > 0 else ""


def format_age(microseconds: int, now: datetime) -> str:
    """How long ago a point in time was."""
    return ago(from_microseconds(microseconds), now) if microseconds > 0 else ""


def format_duration(microseconds: int) -> str:
    """A length of time in its largest unit."""
    return duration(microseconds / 1_000_000)


def session_url(entry: Entry) -> Markup:
    """The address of a session's page."""
    return session_url_of(entry.agent, entry.id, entry.key)


def session_url_of(agent: str, identity: str, key: str, message: int | None = None) -> Markup:
    """The address of a session, or of a message in it."""
    anchor = f"#m{message}" if message is not None else ""
    return Markup(f"/session/{quote(agent, safe='')}/{public_id(identity, key)}{anchor}")


def public_id(identity: str, key: str) -> str:
    """The id of a session in addresses: its own, or the catalog key.

    Some agents let users choose the id; it must be valid in a path, and no profile may mask a part of it.
    """
    if UUID.fullmatch(identity):
        return identity
    is_plain = PLAIN_ID.fullmatch(identity) is not None and masking("all").text(identity) == identity
    return identity if is_plain else key


def link(path: str, profile: str, /, **params: object) -> Markup:
    """An address with query parameters. Masked values become references."""
    reference = masking(profile).reference
    return escape(f"{path}?{urlencode({name: reference(str(value)) for name, value in params.items()})}")


def session_name(entry: Entry, mask: Callable[[str], str]) -> str:
    """The name of a session wherever pages show it."""
    return session_name_of(entry.title, entry.id, mask, is_subagent=entry.is_subagent)


def session_name_of(title: str, identity: str, mask: Callable[[str], str], *, is_subagent: bool = False) -> str:
    """The title of a session, or its kind and the start of its id. An id is masked before it is cut."""
    return title or f"{'Sub-agent' if is_subagent else 'Session'} {mask(identity)[:ID_CHARS]}"


def highlight(snippet: Any) -> Markup:
    """The HTML of a search snippet, with its matches marked."""
    pieces, end_of_last = list[str](), 0
    for start, end in snippet.marks:
        before, match = snippet.text[end_of_last:start], snippet.text[start:end]
        pieces += [escape_text(before), "<mark>", escape_text(match), "</mark>"]
        end_of_last = end
    return Markup("".join([*pieces, escape_text(snippet.text[end_of_last:])]))
