"""Templates: everything that is put into one is made visible and escaped, unless it is HTML of our own."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from clew.catalog.queries import Entry
from clew.catalog.stats import UsageTotals
from clew.model.time import format_utc
from clew.render.page.escape import text
from clew.render.page.frame import theme, views
from clew.render.safe import visible
from clew.render.shell import shell_word
from clew.render.tables import ago, size
from clew.web.assets import static
from clew.web.masking import masking

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_UUID = re.compile(r"(?:agent-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NANO = 10**9
_FIRST = frozenset({"base.html", "home.html", "session.html", "sessions.html"})


def drawn(template: str, profile: str, **values: object) -> str:
    """The HTML of a template, with all texts masked that the profile forbids."""
    return _environment(profile).get_template(template).render(**values)


def compile_templates(profile: str) -> None:
    """Compile every template now, those first that are asked for first."""
    made = _environment(profile)
    for template in sorted(made.list_templates(), key=lambda name: (name not in _FIRST, name)):
        made.get_template(template)


@lru_cache
def _environment(profile: str) -> Environment:
    mask = masking(profile).text

    def shown(value: Any) -> Any:
        """Foreign text with all that is invisible spelled out."""
        if value is None:
            return ""
        return visible(mask(value)) if type(value) is str else value

    made = Environment(
        loader=PackageLoader("clew.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
    )
    made.filters |= {
        "number": number,
        "money": money,
        "clock": clock,
        "day": day,
        "span": span,
        "size": size,
        "address": address,
        "marked": marked,
        "name": lambda entry: name(entry, mask),
    }
    made.globals |= {"age": age, "cost_of": cost_of, "static": static, "quoted": shell_word}
    made.globals["link"] = lambda path, /, **parameters: link(path, profile, **parameters)
    made.globals |= {"theme": Markup(theme()), "choices": Markup(views("full"))}
    return made


def number(value: int | None) -> str:
    """An exact number; nothing where it is unknown."""
    return "" if value is None else f"{value:,}"


def money(nano: int | None) -> str:
    """Dollars; small sums keep their digits."""
    if nano is None:
        return ""
    dollars = nano / _NANO
    return f"${dollars:,.2f}" if dollars >= 1 or not nano else f"${dollars:.4f}"


def cost_of(used: UsageTotals) -> str:
    """What it cost; where some of it has no price, that it was at least this."""
    if not used.calls:
        return ""
    if not used.priced_calls:
        return "unknown"
    return ("≥ " if used.priced_calls < used.calls else "") + money(used.cost_nano)


def clock(microseconds: int) -> str:
    """A point in time, to the minute, in UTC."""
    return format_utc(microseconds)[:16].replace("T", " ") if microseconds > 0 else ""


def day(microseconds: int) -> str:
    """The day of a point in time."""
    return format_utc(microseconds)[:10] if microseconds > 0 else ""


def _time(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC)


def age(microseconds: int, now: datetime) -> str:
    """How long ago."""
    return ago(_time(microseconds), now) if microseconds > 0 else ""


def span(microseconds: int) -> str:
    """A length of time."""
    seconds = microseconds / 1_000_000
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds else ""


def address(entry: Entry) -> Markup:
    """The page of a session. An id that would be no plain part of a path gives way to the catalog's own."""
    return session_address(entry.agent, entry.id, entry.key)


def session_address(agent: str, identity: str, key: str, message: int | None = None) -> Markup:
    """The same of a session by its names, and of a message in it."""
    place = f"#m{message}" if message is not None else ""
    return Markup(f"/session/{quote(agent, safe='')}/{identity if _may_be_shown(identity) else key}{place}")


def _may_be_shown(identity: str) -> bool:
    """True for an id that is a plain part of a path, and that no profile masks: some agents let people choose it."""
    if _UUID.fullmatch(identity):
        return True
    return _PLAIN.fullmatch(identity) is not None and masking("all").text(identity) == identity


def link(path: str, profile: str, /, **parameters: object) -> Markup:
    """An address with parameters. What the profile masks does not stand in it."""
    refer = masking(profile).reference
    return escape(f"{path}?{urlencode({name: refer(str(value)) for name, value in parameters.items()})}")


def name(entry: Entry, mask: Callable[[str], str]) -> str:
    """What a session is called."""
    return entry.title or f"{'Sub-agent' if entry.is_subagent else 'Session'} {mask(entry.id)[:16]}"


def marked(snippet: Any) -> Markup:
    """A snippet with what was found marked."""
    pieces, last = list[str](), 0
    for start, end in snippet.marks:
        pieces += [text(snippet.text[last:start]), "<mark>", text(snippet.text[start:end]), "</mark>"]
        last = end
    return Markup("".join([*pieces, text(snippet.text[last:])]))
