"""The page on which the user's settings are shown and changed."""

from __future__ import annotations

import os
from functools import lru_cache
from zoneinfo import available_timezones

import msgspec
from starlette.responses import Response

from clew.errors import SourceUnreadable, UsageError
from clew.model.json import JSON
from clew.redact.findings import PROFILES
from clew.render.detail import DETAILS
from clew.render.page.frame import THEMES
from clew.settings import DENSITIES, EDITORS, NO_EDITOR, save_settings, settings_path
from clew.timezone import ZONE_VARIABLE
from clew.web.request import PageRequest, respond

MASKED_BY_PROFILE = {
    "none": "nothing",
    "secrets": "secrets",
    "pii": "secrets and personal data",
    "paths": "secrets and paths",
    "all": "secrets, personal data and paths",
}
CHOICES = {
    "theme": ("Colours", [(name, {"auto": "as the system"}.get(name, name)) for name in THEMES]),
    "density": ("Density", [(name, name) for name in DENSITIES]),
    "detail": ("Detail of a session", [(name, name) for name in DETAILS]),
    "masking": ("Masked", [(name, MASKED_BY_PROFILE[name]) for name in PROFILES]),
    "editor": ("Editor", [(NO_EDITOR, "none"), *((scheme, title) for scheme, (title, _) in EDITORS.items())]),
}
"""The settings that are one of a few values: label, and value and text of each option."""


class SettingsChange(msgspec.Struct, forbid_unknown_fields=True):
    """What the script of the page posts: the new values of some settings, by name."""

    changes: dict[str, str]


def view(request: PageRequest) -> Response:
    """The page."""
    return respond(
        request,
        "settings.html",
        choices_of=CHOICES,
        zones=_zones(),
        forced_zone=os.environ.get(ZONE_VARIABLE, ""),
        file=str(settings_path()),
    )


def change(_request: PageRequest, body: SettingsChange) -> JSON:
    """Store some settings."""
    try:
        save_settings(body.changes)
    except SourceUnreadable as error:
        raise UsageError(str(error)) from None
    return {}


@lru_cache(1)
def _zones() -> list[str]:
    """The time zones to choose from: those named by a place, and UTC."""
    places = (name for name in available_timezones() if "/" in name and not name.startswith(("Etc/", "SystemV/")))
    return ["UTC", *sorted(places)]
