"""clew branch: one branch of a session in clew's own store: shown, named, gone to, compared."""

from __future__ import annotations

from collections.abc import Iterable

import click
import msgspec

from clew.cli.command_branches import print_branches
from clew.cli.options import common, wants_json
from clew.cli.output import print_json, print_line
from clew.cli.own import own_session
from clew.errors import UsageError
from clew.model.json import JSON
from clew.store.session import Session


@click.command("branch")
@click.argument("reference", metavar="REF")
@click.argument("branch", required=False, metavar="[BRANCH]")
@click.option("--switch", is_flag=True, help="Go on from BRANCH: the next message follows it.")
@click.option("--name", metavar="NAME", help="Give BRANCH this name.")
@click.option("--compare", "other", metavar="OTHER", help="What BRANCH and OTHER share, and what each has alone.")
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    reference: str,
    branch: str | None,
    switch: bool,
    name: str | None,
    other: str | None,
    homes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show the messages of a branch; without one, of where the conversation stands.

    BRANCH is a branch's name or id, the uuid of a message, or #12 for the twelfth. Names and moves are appended to the
    log; nothing that was said is changed or lost.
    """
    session = own_session(context, homes, reference)
    json = wants_json(context, as_json)
    if other is not None:
        _compare(session, branch or session.head or "", other, json)
    elif switch or name is not None:
        if branch is None:
            raise UsageError("say which branch")
        _mark(session, branch, switch, name)
        if json:
            print_json([msgspec.to_builtins(one) for one in session.branches()])
        else:
            print_branches(session.branches())
    else:
        _print(session.messages(branch), json)


def _mark(session: Session, branch: str, switch: bool, name: str | None) -> None:
    with session:
        if name is not None:
            session.name_branch(branch, name)
        if switch:
            session.switch(branch)


def _compare(session: Session, one: str, other: str, json: bool) -> None:
    found = session.compare(one, other)
    if json:
        print_json({"base": found.base, "one": found.one, "other": found.other})
        return
    records = {record.get("uuid"): record for record in session.records()}
    click.echo(f"shared up to {found.base or 'nothing'}")
    for title, uuids in ((one, found.one), (other, found.other)):
        click.echo(f"only on {title}:")
        _print([records[uuid] for uuid in uuids], False, "  ")


def _print(records: Iterable[dict[str, JSON]], json: bool, indent: str = "") -> None:
    from clew.render.safe import one_line

    for record in records:
        if json:
            print_line(record)
        else:
            click.echo(f"{indent}{str(record.get('uuid'))[:8]}  {record['type']:<11}  {one_line(_gist(record))[:100]}")


def _gist(record: dict[str, JSON]) -> str:
    """What a record says, in a line."""
    inner = record.get("message")
    inner = inner if isinstance(inner, dict) else {}
    content = inner.get("content")
    calls = [call.get("name") for call in inner.get("toolCalls") or () if isinstance(call, dict)]
    results = [result.get("content") for result in record.get("toolResults") or () if isinstance(result, dict)]
    blocks = content if isinstance(content, list) else []
    # A log may hold anything, also from other writers.
    words = [block.get("text") for block in blocks if isinstance(block, dict)]
    words = [content, *words] if isinstance(content, str) else words
    return " ".join(" ".join(str(word) for word in (*words, *calls, *results) if word).split())
