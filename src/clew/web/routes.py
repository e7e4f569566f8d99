"""Which page is at which address."""

from __future__ import annotations

from starlette.routing import Route

from clew.web.asking import nothing, route
from clew.web.live import Streams
from clew.web.pages import files, graph, home, panels, search, secrets, session, sessions, sources, usage
from clew.web.shelf import Shelf

TABLE = {
    "/": home.page_of,
    "/running": home.running,
    "/sessions": sessions.page_of,
    "/session/{agent}/{identity}": session.page_of,
    "/session/{agent}/{identity}/window/{number:int}": session.window,
    "/session/{agent}/{identity}/more/{section:int}/{number:int}": session.more,
    "/session/{agent}/{identity}/print": session.printed,
    "/session/{agent}/{identity}/outline": session.outline,
    "/session/{agent}/{identity}/graph": graph.page_of,
    "/session/{agent}/{identity}/panel/{panel}": panels.page_of,
    "/search": search.page_of,
    "/usage": usage.page_of,
    "/usage.csv": usage.sheet,
    "/files": files.page_of,
    "/files/history": files.history,
    "/files/changes": files.changes,
    "/files/blame": files.blamed,
    "/secrets": secrets.page_of,
    "/sources": sources.page_of,
}


def pages(shelf: Shelf) -> list[Route]:
    """Every page; an address of none of them is told so."""
    streams = Streams(shelf)
    # Secrets are looked for in sources, and a server has none.
    found = {path: function for path, function in TABLE.items() if path != "/secrets" or not shelf.engine}
    return [
        *(route(shelf, path, function) for path, function in found.items()),
        Route("/session/{agent}/{identity}/live", streams.session),
        route(shelf, "/{rest:path}", nothing),
    ]
