"""Measures the web app in Chromium: from a request to the first paint of a page, and from a keystroke to its hits.

The app is started with `clew web`, after a sync; `CLEW_DATA_DIR` keeps the catalog for the next run. Pages are opened
several times; sessions of about 5,000 messages once each, because they are cached afterwards.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Options

if TYPE_CHECKING:
    from playwright.sync_api import Page

_CLEW = "import sys; from clew.cli.main import run; sys.exit(run())"
_CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome")
LONG_SESSION_MESSAGES, LONG_SESSIONS = 5_000, 5
QUERIES = ("error in test", "function return", "config file", "async import")
_TIMINGS_SCRIPT = """() => {
  const page = performance.getEntriesByType("navigation")[0];
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  return [page.responseEnd - page.startTime, paint ? paint.startTime : page.domContentLoadedEventEnd];
}"""


def report(options: Options) -> Iterator[str]:
    """The lines of the report."""
    program = os.environ.get("CLEW_CHROMIUM") or next(filter(None, map(shutil.which, _CHROMIUM)), None)
    if program is None:
        yield "web: skipped, no Chromium was found"
        return
    from playwright.sync_api import sync_playwright

    with _folder() as folder, sync_playwright() as driver:
        env = {**os.environ, "CLEW_DATA_DIR": str(folder)}
        subprocess.run([sys.executable, "-c", _CLEW, "--home", str(options.home), "sync"], env=env, check=True)
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        with _running(options.home, env) as link:
            page = browser.new_page()
            page.goto(link)
            page.wait_for_url("**/", wait_until="load")
            base = page.url.rstrip("/")
            yield f"web: {options.home}, milliseconds to the end of the response and to the first paint"
            entry = [_open_page(page, base + "/enter") for _ in range(max(5, options.rounds))]
            yield _line("floor, an empty page", entry)
            for path in ("/", "/sessions", "/usage", "/files"):
                yield _line(path, [_open_page(page, base + path) for _ in range(max(5, options.rounds))])
            for path, messages in _long_sessions(options.home, folder):
                yield _line(f"a session of {messages:,}", [_open_page(page, base + path)])
                # The outline of the whole session is loaded after the first window.
                page.wait_for_selector(".outline")
            yield _keystrokes(page, base)
        browser.close()


@contextmanager
def _folder() -> Iterator[Path]:
    kept = os.environ.get("CLEW_DATA_DIR")
    if kept:
        yield Path(kept)
        return
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        yield Path(folder)


@contextmanager
def _running(home: Path, env: dict[str, str]) -> Iterator[str]:
    command = [sys.executable, "-c", _CLEW, "web", "--port", "0", "--no-sync", "--home", str(home)]
    with subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        try:
            yield running.stdout.readline().strip()
        finally:
            running.terminate()


def _open_page(page: Page, address: str) -> tuple[float, float]:
    page.goto(address, wait_until="load")
    # The content security policy of the app forbids `wait_for_function`.
    while not page.evaluate("performance.getEntriesByName('first-contentful-paint').length"):
        page.wait_for_timeout(20)
    answered, seen = page.evaluate(_TIMINGS_SCRIPT)
    return answered, seen


def _line(name: str, times: list[tuple[float, float]]) -> str:
    answered, seen = (sorted(column) for column in zip(*times, strict=True))
    return (
        f"  {name:24} answer {statistics.median(answered):6.0f} (best {answered[0]:.0f}, worst {answered[-1]:.0f})"
        f"   paint {statistics.median(seen):6.0f} (best {seen[0]:.0f}, worst {seen[-1]:.0f})"
    )


def _long_sessions(home: Path, folder: Path) -> list[tuple[str, int]]:
    """The paths and lengths of the sessions whose length is nearest to `LONG_SESSION_MESSAGES`."""
    from clew.catalog.database import catalog_folder, open_reader

    os.environ["CLEW_DATA_DIR"] = str(folder)
    db = open_reader(catalog_folder([home]))
    assert db is not None
    query = "SELECT agent, native_id, message_count FROM sessions ORDER BY abs(message_count - ?) LIMIT ?"
    rows = db.execute(query, (LONG_SESSION_MESSAGES, LONG_SESSIONS)).fetchall()
    db.close()
    return [(f"/session/{agent}/{identity}", count) for agent, identity, count in rows]


def _keystrokes(page: Page, base: str) -> str:
    """Measure from the request of a keystroke to its hits in the page, without the delay before the request."""
    times: list[float] = []
    page.goto(f"{base}/search")
    for query in QUERIES:
        page.locator("#query").fill("")
        for letter in query:
            page.evaluate("delete document.querySelector('#hits').dataset.took")
            page.locator("#query").press_sequentially(letter)
            page.wait_for_selector("#hits[data-took]", state="attached")
            times.append(float(page.evaluate("document.querySelector('#hits').dataset.took")))
    times.sort()
    at = times[int(len(times) * 0.95)]
    return (
        f"  {'a search keystroke':24} median {statistics.median(times):.0f}, 95 % {at:.0f}, worst {times[-1]:.0f} "
        f"({len(times)} keystrokes)"
    )
