"""Measures the web app in Chromium, beside agentsview where that is installed and has such a page.

    python -m benchmarks web --home HOME [--peers PYTHON]

Both apps serve the same home after a sync, in one run; every figure is measured for clew and then for agentsview.
`CLEW_DATA_DIR` and `AGENTSVIEW_DATA_DIR` keep what was synced for the next run. The figures, in milliseconds:

- A page: from the start of the navigation to the end of the frame that first paints its content, which is a row of the
  session list, a message, or a chart (see `App`). The heading or the empty frame of a page does not count. The median
  of several visits in one tab, and the first of them, in a new tab, for which the app has nothing cached.
- A long session: the same, for sessions of about 5,000 messages. Each is opened once, so nothing is cached.
- A keystroke: from the key to the end of the frame that paints the results for the text so far, with any time that the
  app waits before it asks; and from its request on, without that time. Counted from the third letter on, because
  agentsview asks from there. The 95th percentile and the median.
- Memory of the server: the resident memory of its processes after all this, and the sum of their peaks. Pages of files
  that are mapped into memory count.

No name but the loopback address is resolved, so that a missing network does not delay a page that asks other machines.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import agentsview
from benchmarks.agentsview import Server
from benchmarks.measure import Options

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_CLEW = "import sys; from clew.cli.main import run; sys.exit(run())"
_CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome")
_NO_NETWORK = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
LONGEST_MS = 120_000
"""What takes longer ends the benchmark."""
MIN_VISITS = 5
READING_MS = 500
"""Between two pages."""
LONG_SESSION_MESSAGES, LONG_SESSIONS = 5_000, 5
QUERIES = ("error in test", "function return", "config file", "async import")
LETTERS_NOT_COUNTED = 2


class Content(NamedTuple):
    """A page of an app, and what counts as its content."""

    path: str
    selector: str


class Typing(NamedTuple):
    """A field of an app that answers while one types."""

    path: str
    open_keys: str
    """Keys that open the field; empty if the page shows it."""
    field: str
    results: str
    request: str
    """Part of the address that is asked at every keystroke."""


class App(NamedTuple):
    """What is measured of an app. A page that it does not have is left out."""

    name: str
    pages: dict[str, Content]
    message: str
    """The selector of a message."""
    typing: dict[str, Typing]


CLEW = App(
    name="clew",
    pages={
        "home": Content("/", "svg.heat rect"),
        "session list": Content("/sessions", "#found .list a"),
        "analytics": Content("/usage", "main svg.chart rect"),
    },
    message="main .w [id^=m]",
    typing={
        "palette keystroke": Typing(
            "/", "Control+k", "dialog[open] [role=combobox]", "dialog[open] [role=listbox]", "/palette"
        ),
        "search keystroke": Typing("/search", "", "#query", "#hits", "/search?"),
    },
)
AGENTSVIEW = App(
    name="agentsview",
    pages={
        "home": Content("/", ".how-svg rect"),
        "session list": Content("/sessions", ".session-item a"),
        "analytics": Content("/usage", "svg.treemap rect"),
    },
    message=".virtual-row .message",
    # Its only search is the palette.
    typing={
        name: Typing("/", "Control+k", ".palette-input", ".palette-results", "/api/v1/search")
        for name in ("palette keystroke", "search keystroke")
    },
)
GOALS = {
    "home": 200,
    "session list": 200,
    "long session": 300,
    "analytics": 400,
    "palette keystroke": 50,
    "search keystroke": 50,
    "memory of the server": 250,
}
"""Milliseconds on a home of 1 GB; for keystrokes the 95th percentile from the request on; megabytes for the memory."""

_SCRIPT = (
    f"const LONGEST_MS = {LONGEST_MS};"
    """
const painted = () => new Promise((done) =>
  requestAnimationFrame(() => setTimeout(() => done(performance.now()))));
const frame = () => new Promise(requestAnimationFrame);

window.whenShown = async (selector) => {
  while (performance.now() < LONGEST_MS) {
    if ([...document.querySelectorAll(selector)].some((found) => found.getClientRects().length)) {
      return painted();
    }
    await frame();
  }
  throw new Error(`${location} shows no ${selector}`);
};

window.watchKeystroke = (results, request) => {
  performance.clearResourceTimings();
  let pressed = performance.now();
  addEventListener("keydown", () => { pressed = performance.now(); }, { once: true, capture: true });
  const changes = [];
  const observer = new MutationObserver(() => {
    const change = { at: performance.now(), painted: 0 };
    changes.push(change);
    painted().then((time) => { change.painted = time; });
  });
  observer.observe(document.querySelector(results), { childList: true, subtree: true, characterData: true });
  window.keystroke = (async () => {
    while (performance.now() < pressed + LONGEST_MS) {
      const answer = performance.getEntriesByType("resource").find(
        (entry) => entry.startTime >= pressed && entry.responseEnd && entry.name.includes(request));
      const change = answer && changes.find((each) => each.at >= answer.responseEnd);
      const isSame = answer && !change && performance.now() > answer.responseEnd + 300;
      if (change?.painted || isSame) {
        observer.disconnect();
        const end = isSame ? answer.responseEnd : change.painted;
        return [end - pressed, end - answer.startTime];
      }
      await frame();
    }
    throw new Error(`no answer from ${request}`);
  })();
};
"""
)
"""Runs in the page before its own scripts. Results that stay the same are painted when the answer arrives."""


def report(options: Options) -> Iterator[str]:
    """The lines of the report."""
    program = os.environ.get("CLEW_CHROMIUM") or next(filter(None, map(shutil.which, _CHROMIUM)), None)
    if program is None:
        yield "web: skipped, no Chromium was found"
        return
    from playwright.sync_api import sync_playwright

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="clew-bench-")))
        browser = stack.enter_context(sync_playwright()).chromium.launch(
            executable_path=program, args=["--no-sandbox", _NO_NETWORK]
        )
        clew = Path(os.environ.get("CLEW_DATA_DIR") or folder / "clew")
        running = [Running(CLEW, stack.enter_context(_clew_server(options.home, clew)), browser)]
        peer = options.peers.with_name("agentsview") if options.peers else shutil.which("agentsview")
        if peer:
            data = Path(os.environ.get("AGENTSVIEW_DATA_DIR") or folder / "agentsview")
            env = agentsview.environment(agentsview.link_home(options.home, folder / "home"), data)
            subprocess.run([peer, "sync"], env=env, check=True, stdout=subprocess.DEVNULL)
            server = stack.enter_context(agentsview.serving(str(peer), env))
            running.append(Running(AGENTSVIEW, server, browser))
        visits = max(MIN_VISITS, options.rounds)
        yield f"web: {options.home}, milliseconds in Chromium, median of {visits} (first; worst)"
        yield _line("", "goal", [each.app.name for each in running])
        for name in CLEW.pages:
            yield _line(name, GOALS[name], [each.visit(name, visits) for each in running])
        sessions = _long_sessions(options.home, clew)
        lengths = f"{min(sessions.values()):,} to {max(sessions.values()):,} messages"
        yield _line("long session", GOALS["long session"], [each.open_sessions(list(sessions)) for each in running])
        yield f"  ({len(sessions)} sessions, {lengths})"
        for name in CLEW.typing:
            yield _line(name, GOALS[name], [each.type_queries(name) for each in running])
        yield _line("memory of the server", GOALS["memory of the server"], [each.memory() for each in running])
        browser.close()


class Running:
    """An app that runs, and a browser that is logged in to it."""

    def __init__(self, app: App, server: Server, browser: Browser) -> None:
        self.app, self._pid = app, server.pid
        self._context = browser.new_context(viewport={"width": 1440, "height": 900})
        self._context.set_default_timeout(LONGEST_MS)
        self._context.add_init_script(_SCRIPT)
        page = self._context.new_page()
        page.goto(server.address)
        page.wait_for_url("**/", wait_until="load")
        self._base = page.url.rstrip("/")
        page.close()

    def visit(self, name: str, visits: int) -> str:
        """Measure a page."""
        path, selector = self.app.pages[name]
        return self._open([path] * visits, selector)

    def open_sessions(self, sessions: list[tuple[str, str]]) -> str:
        """Measure sessions, each once."""
        return self._open([self._session_path(*session) for session in sessions], self.app.message)

    def type_queries(self, name: str) -> str:
        """Measure keystrokes."""
        typing = self.app.typing[name]
        page = self._context.new_page()
        page.goto(self._base + typing.path, wait_until="load")
        if typing.open_keys:
            page.wait_for_selector(self.app.pages["home"].selector, state="attached")
            page.keyboard.press(typing.open_keys)
        page.wait_for_selector(typing.field)
        times = [time for query in QUERIES for time in _type(page, typing, query)]
        page.close()
        with_wait, without_wait = (sorted(column) for column in zip(*times, strict=True))
        return (
            f"95 % {_percentile(without_wait, 95):.0f}, median {statistics.median(without_wait):.0f} "
            f"(with the wait before it asks {_percentile(with_wait, 95):.0f}, {statistics.median(with_wait):.0f})"
        )

    def memory(self) -> str:
        """The megabytes of the server's processes."""
        now = sum(_status(pid, "VmRSS") for pid in _processes(self._pid))
        peak = sum(_status(pid, "VmHWM") for pid in _processes(self._pid))
        return f"{now:.0f} MB (peak {peak:.0f})"

    def _open(self, paths: list[str], selector: str) -> str:
        """Open pages one after the other in one tab."""
        page = self._context.new_page()
        page.add_init_script(f"window.shown = whenShown({json.dumps(selector)})")
        times: list[float] = []
        for path in paths:
            page.goto(self._base + path, wait_until="commit")
            times.append(page.evaluate("window.shown"))
            page.wait_for_load_state("load")
            page.wait_for_timeout(READING_MS)
        page.close()
        return _summary(times)

    def _session_path(self, agent: str, identity: str) -> str:
        if self.app is CLEW:
            return f"/session/{agent}/{identity}"
        return f"/sessions/{identity}" if agent == "claude-code" else f"/sessions/{agent}/{identity}"


@contextmanager
def _clew_server(home: Path, data: Path) -> Iterator[Server]:
    env = {**os.environ, "CLEW_DATA_DIR": str(data)}
    subprocess.run([sys.executable, "-c", _CLEW, "--home", str(home), "sync"], env=env, check=True)
    command = [sys.executable, "-c", _CLEW, "web", "--port", "0", "--no-sync", "--home", str(home)]
    with subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        try:
            yield Server(running.stdout.readline().strip(), running.pid)
        finally:
            running.terminate()


def _type(page: Page, typing: Typing, query: str) -> Iterator[tuple[float, float]]:
    """Type a query letter by letter; yields the times with and without the wait before the request."""
    page.locator(typing.field).fill("")
    page.locator(typing.field).press_sequentially(query[:LETTERS_NOT_COUNTED])
    page.wait_for_timeout(1_000)
    for letter in query[LETTERS_NOT_COUNTED:]:
        page.evaluate("([results, request]) => watchKeystroke(results, request)", [typing.results, typing.request])
        page.locator(typing.field).press("Space" if letter == " " else letter)
        with_wait, without_wait = page.evaluate("window.keystroke")
        yield with_wait, without_wait


def _long_sessions(home: Path, data: Path) -> dict[tuple[str, str], int]:
    """The agents, ids and lengths of the sessions whose length is nearest to `LONG_SESSION_MESSAGES`."""
    from clew.catalog.database import catalog_folder, open_reader

    os.environ["CLEW_DATA_DIR"] = str(data)
    db = open_reader(catalog_folder([home]))
    assert db is not None
    query = "SELECT agent, native_id, message_count FROM sessions ORDER BY abs(message_count - ?) LIMIT ?"
    rows = db.execute(query, (LONG_SESSION_MESSAGES, LONG_SESSIONS)).fetchall()
    db.close()
    return {(agent, identity): count for agent, identity, count in rows}


def _processes(pid: int) -> list[int]:
    """A process and its descendants."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in _processes(int(child)))]


def _status(pid: int, name: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


def _percentile(times: list[float], percent: int) -> float:
    return times[min(len(times) - 1, len(times) * percent // 100)]


def _summary(times: list[float]) -> str:
    return f"{statistics.median(times):.0f} ({times[0]:.0f}; {max(times):.0f})"


def _line(name: str, goal: int | str, columns: list[str]) -> str:
    return f"  {name:22}{goal:>6}   " + "".join(f"{column:50}" for column in columns).rstrip()
