"""Visits to other machines, several at once; one that does not answer is one line, and stops no other."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import click

from clew.cli.output import say
from clew.cli.sourcing import FAILED
from clew.errors import RemoteFailed
from clew.host import Host
from clew.sources import config
from clew.sources.fetch import FetchResult, Progress, fetch, fetch_dry_run
from clew.sources.registry import Source, sources

AT_ONCE = 8


def configured_sources() -> list[Source]:
    """Every source; what is wrong with the file that names them is said."""
    for problem in config.load().problems:
        say(f"clew: {problem}")
    return sources()


def fetch_one(source: Source) -> FetchResult:
    """Bring what is new on a host."""
    assert source.mirror is not None
    return fetch(source.target, source.mirror, Host.local().now(), _progress(source.name))


def look_at_one(source: Source) -> FetchResult:
    """See what is new on a host."""
    assert source.mirror is not None
    return fetch_dry_run(source.target, source.mirror)


def _progress(name: str) -> Progress | None:
    """On a terminal, a line that counts; it goes when it is done."""
    if not sys.stderr.isatty():
        return None
    begun = shown = time.monotonic()

    def count(done: int, total: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if done == total and shown > begun:
            click.echo("\r\x1b[K", err=True, nl=False)
        elif now - begun > 1 and now - shown > 0.1:
            shown = now
            click.echo(f"\r\x1b[K{name}: {done} of {total} files", err=True, nl=False)

    return count


def refresh(context: click.Context, chosen: Sequence[Source]) -> None:
    """Fetch what is new on the hosts among the sources."""
    for source, result in visit(context, chosen, fetch_one):
        if isinstance(result, RemoteFailed):
            continue
        if result.kept:
            say(f"clew: {source.name}: {kept_copies(source, result)}")
        for problem in result.problems:
            say(f"clew: {problem}")


def kept_copies(source: Source, result: FetchResult) -> str:
    """Say how many earlier copies a visit set aside, and where."""
    assert source.mirror is not None
    return f"{result.kept} files became shorter over there; the earlier copies are in {source.mirror.kept}"


def visit(
    context: click.Context, chosen: Sequence[Source], work: Callable[[Source], FetchResult]
) -> list[tuple[Source, FetchResult | RemoteFailed]]:
    """Do the work for every host among the sources; a failure is said, and decides the exit code."""

    def attempt(source: Source) -> FetchResult | RemoteFailed:
        try:
            return work(source)
        except RemoteFailed as error:
            return error

    remote = [source for source in chosen if source.mirror is not None]
    if len(remote) < 2:
        # Without threads an interrupt ends it at once.
        results = [attempt(source) for source in remote]
    else:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            results = list(pool.map(attempt, remote))
    for result in results:
        if isinstance(result, RemoteFailed):
            context.meta[FAILED] = True
            say(f"clew: {result}")
    return list(zip(remote, results, strict=True))
