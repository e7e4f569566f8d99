"""The stars, labels, notes and titles of the user in memory: every page asks for some of them."""

from __future__ import annotations

import time

from clew.annotations import AnnotationIndex, Annotations
from clew.catalog.change_detection import trusted_mtime
from clew.errors import Busy

WAIT_SECONDS = 0.5
"""How long a page waits for a process that is writing annotations."""


class AnnotationCache:
    """Reads the file of annotations again when it has changed."""

    def __init__(self) -> None:
        self._known: tuple[object, AnnotationIndex] | None = None

    def get(self) -> AnnotationIndex:
        """The annotations as they are now; while another process writes, as they were before.

        Raises AnnotationsUnreadable, and Busy if they were never read.
        """
        annotations = Annotations(wait_seconds=WAIT_SECONDS)
        try:
            stat = annotations.path.stat()
            state = stat.st_ino, stat.st_size, stat.st_mtime_ns
        except OSError:
            state = None
        known = self._known
        if known is not None and known[0] == state:
            return known[1]
        # A file that was changed a moment ago may change again under the same time.
        is_settled = state is None or trusted_mtime(state[2], time.time_ns()) == state[2]
        try:
            index = annotations.index()
        except Busy:
            if known is None:
                raise
            return known[1]
        self._known = state if is_settled else object(), index
        return index
