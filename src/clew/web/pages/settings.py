"""The page on which settings and the names of projects are shown and changed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from zoneinfo import available_timezones

import msgspec
from markupsafe import Markup, escape
from starlette.responses import Response

from clew import project_names
from clew.catalog import queries
from clew.catalog.database import CatalogNotWritable
from clew.catalog.project_suggestions import ProjectFolder, Suggestion, is_hash, project_folders, suggestions
from clew.catalog.sync import apply_project_names
from clew.errors import Busy, SourceUnreadable, UnknownReference, UsageError
from clew.io.paths import path_for_display
from clew.model.json import JSON
from clew.redact.findings import PROFILES
from clew.render.detail import DETAILS
from clew.render.page.frame import THEMES
from clew.timezone import ZONE_VARIABLE
from clew.web import user_settings
from clew.web.context import NO_MASKING, resolve_reference
from clew.web.editor import EDITORS
from clew.web.request import PageRequest, respond
from clew.web.user_settings import DENSITIES, NO_EDITOR

NAMES_WAIT_SECONDS = 2.0
"""A sync that runs for longer writes the names into the catalog itself."""

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
    "detail": ("Level of detail", [(name, name) for name in DETAILS]),
    "masking": ("Hide by default", [(name, MASKED_BY_PROFILE[name]) for name in PROFILES]),
    "editor": ("Open files in", [(NO_EDITOR, "none"), *((scheme, title) for scheme, (title, _) in EDITORS.items())]),
}
"""The settings that are one of a few values: title, and value and text of each option."""
TITLES = {name: title for name, (title, _) in CHOICES.items()} | {"timezone": "Time zone"}


class SettingsChange(msgspec.Struct, forbid_unknown_fields=True):
    """What the script of the page posts: the new values of some settings, by name."""

    changes: dict[str, str]


class NamesChange(msgspec.Struct, forbid_unknown_fields=True):
    """What the script posts about projects: one that was typed with its name, or names by key, or keys to remove."""

    project: str = ""
    name: str = ""
    names: dict[str, str] = {}
    remove: list[str] = []


class NameRow(NamedTuple):
    """One or more projects with a name, or with one that is suggested, or with a hash in place of a name."""

    name: str
    projects: list[str]
    """What the projects are called in the file of names."""
    data: Markup
    """What the script needs to give or to remove the name, as JSON for an attribute."""
    reason: str = ""
    sessions: int = 0


def view(request: PageRequest) -> Response:
    """The page."""
    return respond(
        request,
        "settings.html",
        **_given_names(request),
        choices_of=CHOICES,
        zones=_zones(),
        forced_zone=os.environ.get(ZONE_VARIABLE, ""),
        file=str(user_settings.settings_path()),
    )


def change(request: PageRequest, body: SettingsChange) -> JSON:
    """Store some settings."""
    if "masking" in body.changes and request.context.profile != NO_MASKING:
        raise UsageError("what is masked cannot be changed while the app runs with --redact")
    try:
        user_settings.save(body.changes, TITLES)
    except SourceUnreadable as error:
        raise UsageError(str(error)) from None
    return {}


def names_view(request: PageRequest) -> Response:
    """The part of the page with the names that were given to projects."""
    return respond(request, "project_names.html", **_given_names(request))


def suggestions_view(request: PageRequest) -> Response:
    """The part of the page with names that would help, and what can be chosen in its form. Read when it is shown."""
    try:
        names = project_names.load()
    except SourceUnreadable:
        names = {}
    context = request.context

    def find() -> tuple[list[ProjectFolder], list[Suggestion]]:
        folders = project_folders(context.db)
        return folders, suggestions(context.db, folders, names)

    folders, suggested = context.recent(f"project suggestions {names}", find)
    return respond(
        request,
        "project_suggestions.html",
        suggested=[_suggested_row(request, one) for one in suggested],
        unnamed=_unnamed_rows(request, folders, suggested),
        projects=_unmasked(request, (folder.workspace or folder.recorded for folder in folders)),
        names=_unmasked(request, queries.names(context.db)["project"]),
    )


def change_names(request: PageRequest, body: NamesChange) -> JSON:
    """Store names of projects, and write them into the catalog unless a sync does it."""
    try:
        if body.remove:
            project_names.remove(list(map(resolve_reference, body.remove)))
        elif body.names:
            project_names.add({resolve_reference(key): resolve_reference(name) for key, name in body.names.items()})
        else:
            keys = project_names.project_keys(resolve_reference(body.project))
            project_names.add(dict.fromkeys(keys, body.name))
    except (SourceUnreadable, UnknownReference) as error:
        raise UsageError(str(error)) from None
    try:
        apply_project_names(request.context.folder, NAMES_WAIT_SECONDS)
    except (Busy, CatalogNotWritable):
        return {"applied": False}
    return {"applied": True}


def _given_names(request: PageRequest) -> dict[str, Any]:
    try:
        names, problem = project_names.load(), ""
    except SourceUnreadable as error:
        names, problem = {}, str(error)
    given = [
        NameRow(name, [path_for_display(key)], _attribute({"remove": [request.masking.reference(key)]}))
        for key, name in sorted(names.items(), key=lambda pair: (pair[1].casefold(), pair[0]))
    ]
    return {"given": given, "names_problem": problem}


def _suggested_row(request: PageRequest, one: Suggestion) -> NameRow:
    reference = request.masking.reference
    data = _attribute({"names": {reference(key): reference(one.name) for key in one.keys}})
    return NameRow(one.name, list(map(path_for_display, one.current)), data, path_for_display(one.reason), one.sessions)


def _unnamed_rows(
    request: PageRequest, folders: Sequence[ProjectFolder], suggested: Sequence[Suggestion]
) -> list[NameRow]:
    """Projects that have only a hash, and for which no name is suggested."""
    keys = {key for one in suggested for key in one.keys}
    return [
        NameRow(
            folder.name,
            [folder.recorded],
            _attribute(request.masking.reference(folder.recorded)),
            sessions=folder.sessions,
        )
        for folder in folders
        if is_hash(folder.name) and folder.recorded not in keys
    ]


def _unmasked(request: PageRequest, names: Iterable[str]) -> list[str]:
    """The names that the profile leaves as they are: a masked one cannot be chosen from a list."""
    different = list(dict.fromkeys(names))
    return [name for name, masked in zip(different, request.masking.names(different), strict=True) if name == masked]


def _attribute(value: JSON) -> Markup:
    return escape(json.dumps(value))


@lru_cache(1)
def _zones() -> list[str]:
    """The time zones to choose from: those named by a place, and UTC."""
    places = (name for name in available_timezones() if "/" in name and not name.startswith(("Etc/", "SystemV/")))
    return ["UTC", *sorted(places)]
