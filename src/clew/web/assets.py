"""The files of the app, and the addresses that they can be kept under: each holds a print of what it leads to."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from importlib.resources import files

TYPES = {
    "app.css": "text/css",
    "app.js": "text/javascript",
    "code.js": "text/javascript",
    "entry.js": "text/javascript",
    "icon.svg": "image/svg+xml",
    "page.css": "text/css",
    "view.js": "text/javascript",
}
"""The files of the app; no other name leads anywhere."""
SHARED = frozenset({"code.js", "page.css", "view.js"})
"""Those of them that pages on their own have too."""


@lru_cache
def own_file(name: str) -> bytes:
    """The bytes of one of them."""
    folder = files("clew.render") / "page" if name in SHARED else files("clew.web") / "static"
    return (folder / name).read_bytes()


@lru_cache
def static(name: str) -> str:
    """Where a file is. What is kept under this address never changes."""
    return f"/static/{name}?v={sha256(own_file(name)).hexdigest()[:16]}"
