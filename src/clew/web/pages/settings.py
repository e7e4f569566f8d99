"""The page on which settings and the names of projects are shown and changed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import available_timezones

import msgspec
from markupsafe import Markup, escape
from starlette.responses import Response

from clew.agents.file_evidence import absolute, is_windows
from clew.catalog import queries
from clew.catalog.database import CatalogNotWritable
from clew.catalog.project_suggestions import is_hash, project_folders, suggestions
from clew.catalog.sync import apply_project_names
from clew.errors import Busy, SourceUnreadable, UsageError
from clew.io.paths import path_for_display
from clew.model.json import JSON
from clew.redact.findings import PROFILES
from clew.render.detail import DETAILS
from clew.render.page.frame import THEMES
from clew.settings import DENSITIES, EDITORS, NO_EDITOR, save_settings, settings_path
from clew.sources import project_names
from clew.timezone import ZONE_VARIABLE
from clew.web.context import NO_MASKING, NoCatalog, resolve_reference
from clew.web.request import PageRequest, respond

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
    "masking": ("Masked", [(name, MASKED_BY_PROFILE[name]) for name in PROFILES]),
    "editor": ("Open files in", [(NO_EDITOR, "none"), *((scheme, title) for scheme, (title, _) in EDITORS.items())]),
}
"""The settings that are one of a few values: label, and value and text of each option."""


class SettingsChange(msgspec.Struct, forbid_unknown_fields=True):
    """What the script of the page posts: the new values of some settings, by name."""

    changes: dict[str, str]


class NamesChange(msgspec.Struct, forbid_unknown_fields=True):
    """What the script posts about projects: names by project, and projects whose name is removed."""

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


class ProjectNames(NamedTuple):
    """What the page shows of projects."""

    given: list[NameRow]
    suggested: list[NameRow]
    unnamed: list[NameRow]
    projects: list[str]
    """Folders, and projects that have none, for the list of a field."""
    names: list[str]
    problem: str


def view(request: PageRequest) -> Response:
    """The page."""
    return respond(
        request,
        "settings.html",
        project_names=_project_names(request),
        choices_of=CHOICES,
        zones=_zones(),
        forced_zone=os.environ.get(ZONE_VARIABLE, ""),
        file=str(settings_path()),
    )


def change(request: PageRequest, body: SettingsChange) -> JSON:
    """Store some settings."""
    if "masking" in body.changes and request.context.profile != NO_MASKING:
        raise UsageError("what is masked cannot be changed while the app runs with --redact")
    try:
        save_settings(body.changes)
    except SourceUnreadable as error:
        raise UsageError(str(error)) from None
    return {}


def names_view(request: PageRequest) -> Response:
    """The part of the page with the names of projects."""
    return respond(request, "project_names.html", project_names=_project_names(request))


def change_names(request: PageRequest, body: NamesChange) -> JSON:
    """Store names of projects, and write them into the catalog unless a sync does it."""
    try:
        if body.names:
            given = {resolve_reference(key): resolve_reference(name) for key, name in body.names.items()}
            project_names.add({_project_key(key): name for key, name in given.items()})
        if body.remove:
            project_names.remove(list(map(resolve_reference, body.remove)))
    except SourceUnreadable as error:
        raise UsageError(str(error)) from None
    try:
        apply_project_names(request.context.folder, NAMES_WAIT_SECONDS)
    except (Busy, CatalogNotWritable):
        return {"applied": False}
    return {"applied": True}


def _project_key(text: str) -> str:
    """A project as it was typed or chosen: a folder without the slash at its end, or a name."""
    text = text.strip()
    return absolute(text, None) if is_windows(text) else text.rstrip("/") or text


def _project_names(request: PageRequest) -> ProjectNames:
    try:
        names, problem = project_names.load(), ""
    except SourceUnreadable as error:
        names, problem = {}, str(error)
    reference = request.masking.reference
    given = [
        NameRow(name, [path_for_display(key)], _attribute({"remove": [reference(key)]}))
        for key, name in sorted(names.items(), key=lambda pair: (pair[1].casefold(), pair[0]))
    ]
    try:
        db, cached = request.context.db, request.context.cached
    except NoCatalog:
        return ProjectNames(given, [], [], [], [], problem)
    folders = cached("project folders", lambda: project_folders(db))
    found = cached(f"project suggestions {names}", lambda: suggestions(db, names))
    suggested = [
        NameRow(
            one.name,
            list(map(path_for_display, one.current)),
            _attribute({"names": {reference(key): reference(one.name) for key in one.keys}}),
            path_for_display(one.reason),
            one.sessions,
        )
        for one in found
    ]
    keys = {key for one in found for key in one.keys}
    unnamed = [
        NameRow(folder.name, [folder.recorded], _attribute(reference(folder.recorded)), "", folder.sessions)
        for folder in folders
        if is_hash(folder.name) and folder.recorded not in keys
    ]
    projects = _unmasked(request, (folder.workspace or folder.recorded for folder in folders))
    return ProjectNames(given, suggested, unnamed, projects, _unmasked(request, queries.names(db)["project"]), problem)


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
