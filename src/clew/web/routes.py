"""The address of each page."""

from __future__ import annotations

from typing import Any

from starlette.routing import Route

from clew.annotations import AnnotationsExport
from clew.web.context import AppContext
from clew.web.live import LiveStreams
from clew.web.pages import (
    annotated,
    compare,
    continuation,
    export,
    files,
    graph,
    home,
    palette,
    panels,
    search,
    secrets,
    session,
    session_list,
    sessions,
    settings,
    sources,
    usage,
)
from clew.web.request import Action, action, not_found, route

VIEWS = {
    "/": home.view,
    "/running": home.running,
    "/sessions": sessions.view,
    "/session/{agent}/{identity}": session.view,
    "/session/{agent}/{identity}/window/{number:int}": session.window,
    "/session/{agent}/{identity}/more/{section:int}/{number:int}": session.more,
    "/session/{agent}/{identity}/message/{number:int}.md": session.message_markdown,
    "/session/{agent}/{identity}/print": session.print_view,
    "/session/{agent}/{identity}/outline": session.outline,
    "/session/{agent}/{identity}/hits": search.in_session,
    "/session/{agent}/{identity}/resume": continuation.resume_command,
    "/session/{agent}/{identity}/continue": continuation.view,
    "/session/{agent}/{identity}/graph": graph.view,
    "/session/{agent}/{identity}/panel/{panel}": panels.view,
    "/session/{agent}/{identity}/annotations": annotated.of_session,
    "/annotations": annotated.view,
    "/annotations/form": annotated.form,
    "/annotations.json": annotated.export,
    "/compare": compare.view,
    "/session-list": session_list.view,
    "/palette": palette.view,
    "/search": search.view,
    "/usage": usage.view,
    "/usage.csv": usage.csv_view,
    "/usage/table": usage.table_view,
    "/files": files.view,
    "/files/history": files.history,
    "/files/changes": files.changes,
    "/files/blame": files.blame_view,
    "/secrets": secrets.view,
    "/sources": sources.view,
    "/settings": settings.view,
    "/settings/projects": settings.names_view,
    "/settings/project-suggestions": settings.suggestions_view,
}
EXPORTS_AT_ONCE = 2
"""Each occupies one of the threads that pages are made in until its file is complete."""
ACTIONS: dict[str, tuple[type[Any], Action[Any]]] = {
    "/annotations": (annotated.AnnotationChange, annotated.change),
    "/annotations/import": (AnnotationsExport, annotated.merge),
    "/sources/sync": (sources.SyncRequest, sources.sync_now),
    "/settings": (settings.SettingsChange, settings.change),
    "/settings/projects": (settings.NamesChange, settings.change_names),
    "/session/{agent}/{identity}/continue": (continuation.WriteRequest, continuation.write),
}
"""What the app's scripts may change: by address, the type of the JSON they post and the function that gets it."""


def pages(context: AppContext) -> list[Route]:
    """The routes of all pages, and one for addresses without a page."""
    # The secret scan reads local files, and a copy of a server has none.
    views = {path: view for path, view in VIEWS.items() if path != "/secrets" or not context.engine}
    return [
        *(route(context, path, view) for path, view in views.items()),
        route(context, "/session/{agent}/{identity}/export/{format}", export.view, at_once=EXPORTS_AT_ONCE),
        *(action(context, path, body_type, perform) for path, (body_type, perform) in ACTIONS.items()),
        Route("/session/{agent}/{identity}/live", LiveStreams(context).session),
        route(context, "/{rest:path}", not_found),
    ]
