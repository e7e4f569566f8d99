"""Progress bars on stderr: only on a terminal, and only for work that takes longer than a moment."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

DELAY_SECONDS = 0.5
"""Work that is done sooner shows no bar."""

OnProgress = Callable[[str, int, int], None]
"""Called with the name of the bar, what is done and what there is in total."""


class ProgressBars:
    """Bars by name, each added when it is first reported; bytes are shown as sizes, other units as numbers."""

    def __init__(self, *, in_bytes: bool = True) -> None:
        self._in_bytes = in_bytes
        self._started = time.monotonic()
        self._progress: Progress | None = None
        self._bars: dict[str, TaskID] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> ProgressBars:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def update(self, name: str, done: int, total: int) -> None:
        """Show how much is done of what there is; may be called from several threads."""
        if time.monotonic() - self._started < DELAY_SECONDS:
            return
        with self._lock:
            if self._progress is None:
                self._progress = _new_progress(self._in_bytes)
                self._progress.start()
            if name not in self._bars:
                self._bars[name] = self._progress.add_task(name, total=total)
            self._progress.update(self._bars[name], completed=done, total=total)


def _new_progress(in_bytes: bool) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    amount = DownloadColumn() if in_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


@contextmanager
def progress_bars(*, is_quiet: bool = False, in_bytes: bool = True) -> Iterator[OnProgress | None]:
    """A callback that shows bars while the block runs; None where stderr is no terminal, or with `is_quiet`."""
    if is_quiet or not sys.stderr.isatty():
        yield None
        return
    with ProgressBars(in_bytes=in_bytes) as bars:
        yield bars.update


@contextmanager
def progress_bar(
    name: str, *, is_quiet: bool = False, in_bytes: bool = True
) -> Iterator[Callable[[int, int], None] | None]:
    """A callback for one bar, which takes what is done and what there is in total; None as `progress_bars`."""
    with progress_bars(is_quiet=is_quiet, in_bytes=in_bytes) as update:
        yield None if update is None else partial(update, name)
