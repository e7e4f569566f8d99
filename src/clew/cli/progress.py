"""Progress bars on stderr: only on a terminal, and only for work that takes longer than a moment.

The bars are drawn by the thread that reports progress: with a thread of their own, no process could be forked safely.
"""

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
LONG_WORK_BYTES = 32 << 20
"""Reading this many bytes takes longer than that, so the bar is shown at once."""
REFRESH_SECONDS = 0.1

OnProgress = Callable[[str, int, int], None]
"""Called with the name of the bar, what is done and what there is in total."""


class ProgressBars:
    """Bars by name, each added when it is first reported; bytes are shown as sizes, other units as numbers."""

    def __init__(self, *, in_bytes: bool = True) -> None:
        self._in_bytes = in_bytes
        self._started = time.monotonic()
        self._progress: Progress | None = None
        self._drawn = 0.0
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
        now = time.monotonic()
        is_long = self._in_bytes and total >= LONG_WORK_BYTES
        with self._lock:
            if self._progress is None:
                if now - self._started < DELAY_SECONDS and not is_long:
                    return
                self._progress = _new_progress(self._in_bytes)
                self._progress.start()
            is_new = name not in self._bars
            if is_new:
                self._bars[name] = self._progress.add_task(name, total=total)
            self._progress.update(self._bars[name], completed=done, total=total)
            if is_new or done >= total or now - self._drawn >= REFRESH_SECONDS:
                self._progress.refresh()
                self._drawn = now


def _new_progress(in_bytes: bool) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    amount = DownloadColumn() if in_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeRemainingColumn())
    console = Console(stderr=True)
    return Progress(*columns, console=console, auto_refresh=False, transient=True, redirect_stdout=False)


@contextmanager
def progress_bars(*, is_quiet: bool = False, in_bytes: bool = True) -> Iterator[OnProgress | None]:
    """A callback that shows bars while the block runs; None where stderr is no terminal, or with `is_quiet`."""
    if is_quiet or not sys.stderr.isatty():
        yield None
        return
    with ProgressBars(in_bytes=in_bytes) as bars:
        yield bars.update


@contextmanager
def progress_bar(name: str, *, is_quiet: bool = False) -> Iterator[Callable[[int, int], None] | None]:
    """A callback for one bar, which takes what is done and what there is in total; None as `progress_bars`."""
    with progress_bars(is_quiet=is_quiet) as update:
        yield None if update is None else partial(update, name)
