"""clew branch: one branch of a session in clew's own store: shown, named, gone to, compared."""

from __future__ import annotations

from collections.abc import Iterable

import click

from clew.agents.file_evidence import ABSENT, FileContent, KnownContent
from clew.agents.sage_agent.locate import AGENT
from clew.agents.sage_agent.records import summary_line
from clew.cli.command_branches import print_branches
from clew.cli.options import choosing_project, common, wants_json
from clew.cli.output import print_json, print_line
from clew.cli.redaction import Redaction, redacting, redaction
from clew.cli.session_argument import session_argument
from clew.cli.sessions import own_session
from clew.cli.undo_common import differing
from clew.errors import SourceUnreadable, UsageError
from clew.io.paths import escape_invalid_utf8
from clew.model.json import JSON
from clew.references import branch_of
from clew.render.shell import shell_word
from clew.store.session import Session
from clew.store.undo_plan import FileDifference


@click.command("branch")
@session_argument(agent=AGENT)
@click.argument("branch", required=False, metavar="[BRANCH]")
@click.option("--switch", is_flag=True, help="Switch to BRANCH: the next message follows it.")
@click.option("--name", metavar="NAME", help="Give BRANCH this name.")
@click.option(
    "--compare",
    "other",
    metavar="OTHER",
    help="Compare BRANCH with OTHER: common messages, own messages, and files that differ.",
)
@redacting
@choosing_project
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
    """Show the messages of a branch; by default of the current one.

    BRANCH is the name or id of a branch, the uuid of a message, or 12 for the twelfth message; REF@BRANCH works too.
    Names and switches are appended to the log; no message is changed or lost.
    """
    session = own_session(context, homes, reference, branches=True)
    branch = branch or branch_of(reference)
    json = wants_json(context, as_json)
    masking = redaction(context, for_programs=json)
    if other is not None:
        _compare(session, branch or session.head or "", other, json, masking)
    elif switch or name is not None:
        if branch is None and switch:
            raise UsageError(f"which branch? `clew branches {shell_word(reference)}` lists them")
        _mark(session, branch or session.head or "", switch, name)
        print_branches(session.branches(), json, masking)
    else:
        _print(session.messages(branch), json, masking)


def _mark(session: Session, branch: str, switch: bool, name: str | None) -> None:
    with session:
        if name is not None:
            session.name_branch(branch, name)
        if switch:
            session.switch(branch)


def _compare(session: Session, one: str, other: str, json: bool, masking: Redaction) -> None:
    found = session.compare(one, other)
    if json:
        files = [{"file": escape_invalid_utf8(file.path), "diff": _diff(session, file)} for file in found.files]
        print_json(masking.value({"base": found.base, "one": found.one, "other": found.other, "files": files}))
        return
    from clew.render.text_safety import one_line, visible

    records = dict(session.by_uuid())
    click.echo(f"shared up to {one_line(masking.text(found.base or 'nothing'))}")
    for title, uuids in ((one, found.one), (other, found.other)):
        click.echo(f"only on {one_line(masking.text(title))}:")
        _print([records[uuid] for uuid in uuids], False, masking, "  ")
    for file in found.files:
        click.echo(visible(str(masking.value(_diff(session, file)))), nl=False)


def _diff(session: Session, file: FileDifference) -> str:
    """How a file at the end of one way differs from what it is at the end of the other."""
    if file.one.link is not None or file.other.link is not None:
        return f"{escape_invalid_utf8(file.path)} is a link on one of them, or leads elsewhere\n"
    try:
        one, other = (_state(session.content(state)) for state in (file.one, file.other))
    except SourceUnreadable as error:
        return f"{escape_invalid_utf8(file.path)} differs: {error}\n"
    return differing(file.path, one, other) or f"{escape_invalid_utf8(file.path)}: its modes differ\n"


def _state(body: bytes | None) -> KnownContent:
    return ABSENT if body is None else FileContent(body, True)


def _print(records: Iterable[dict[str, JSON]], json: bool, masking: Redaction, indent: str = "") -> None:
    from clew.render.text_safety import one_line

    for record in masking.values(records):
        if json:
            print_line(record)
        else:
            uuid, kind = one_line(str(record.get("uuid", ""))), one_line(str(record.get("type") or record.get("role")))
            click.echo(f"{indent}{uuid[:8]:<8}  {kind:<11}  {one_line(summary_line(record))[:100]}")
