"""clew commits: which sessions made the commits of a git range, how that is known, and what they cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.completion import complete_session
from clew.cli.options import Folder, common, open_library, wants_json
from clew.cli.output import print_json, print_message, print_table
from clew.cli.redaction import Redaction, redacting, redaction
from clew.errors import SourceUnreadable, UsageError
from clew.model.json import JSON

if TYPE_CHECKING:
    from clew.stored_session import StoredSession

DEFAULT_COMMITS = 100
"""Commits that are listed if no range is named."""
SHORT_HASH_CHARS = 9


@click.command("commits")
@click.argument("revisions", required=False, metavar="[RANGE]")
@click.option(
    "--repo", type=Folder(path_type=Path), metavar="DIR", help="A folder of the git repository; default: this folder."
)
@click.option(
    "--session",
    "reference",
    metavar="REF",
    shell_complete=complete_session,
    help="Only the commits of this session; without RANGE on all branches, by default in the folder of the session.",
)
@click.option("-n", "--limit", type=click.IntRange(min=1), metavar="N", help="Read only the newest N commits.")
@redacting
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    revisions: str | None,
    repo: Path | None,
    reference: str | None,
    limit: int | None,
    homes: tuple[str, ...],
    as_json: bool,
) -> int:
    """Show which sessions made the commits of a git range, how that is known, and what the sessions cost.

    RANGE is what `git log` takes, such as main..HEAD; without one, the newest 100 commits. A session is certain if its
    own call made the commit or a trailer names it, likely if the commit was rewritten since or holds lines that it
    wrote, possible if it only changed these files before, and stated if a trailer names a session that is not known
    here. The sums count a session once, with its sub-agents. Exit code 1: no session is known for any commit.
    """
    if revisions == "":
        raise UsageError("the range is empty; is a shell variable not set?")
    library = open_library(context, homes)
    session = library.get(reference, missing=True) if reference is not None else None
    if limit is None and revisions is None and session is None:
        limit = DEFAULT_COMMITS
    found = library.commits(revisions, _folder(repo, session), session=session, limit=limit)
    as_json = wants_json(context, as_json)
    masking = redaction(context, for_programs=as_json)
    if as_json:
        print_json(masking.value(found))
    else:
        if found["is_shallow"]:
            print_message("clew: the clone is shallow: earlier commits are missing", mask=False)
        if found["is_cut"]:
            print_message("clew: the range is large: only a part of it was read", mask=False)
        _print(found, masking, is_of_session=session is not None)
    links = [link for row in found["commits"] for link in row["sessions"]]
    return 0 if any(link["certainty"] != "stated" for link in links) else 1


def _folder(repo: Path | None, session: StoredSession | None) -> Path:
    """The folder that was named, or that of the session if it is in a repository, or this one."""
    if repo is not None or session is None:
        return repo or Path()
    from clew.sources import moved_projects

    workspace = session.session_object.get("workspace")
    folder = Path(moved_projects.current_path(workspace, moved_projects.load())) if workspace else Path()
    for place in (folder, Path()):
        if _is_in_repository(place):
            return place
    if folder.is_dir():
        return folder
    raise SourceUnreadable(f"{folder}: the folder of the session does not exist here; name the repository with --repo")


def _is_in_repository(folder: Path) -> bool:
    from clew.io.git import open_repository

    try:
        open_repository(folder)
    except SourceUnreadable:
        return False
    return True


def _print(found: dict[str, JSON], masking: Redaction, *, is_of_session: bool) -> None:
    from clew.render.tables import Column, clock, cost, short_ids

    if not found["commits"]:
        print_message("no commits of this session" if is_of_session else "no commits", mask=False)
        return
    ids = [link["id"] for row in found["commits"] for link in row["sessions"] if link["id"]]
    short = short_ids(ids, ids)
    columns = [
        Column("commit"),
        Column("date", drop_rank=2),
        Column("subject", flexible=True, least=20),
        Column("session"),
        Column("certainty"),
        Column("evidence", flexible=True, least=12, drop_rank=1),
        Column("session cost", right=True, drop_rank=3),
    ]
    cells = []
    for row in found["commits"]:
        day = (clock(row["time"]) or "(unknown)")[:10]
        head = [row["commit"][:SHORT_HASH_CHARS], day, row["subject"]]
        for link in row["sessions"] or [None]:
            if link is None:
                named = ", ".join(row["co_authors"])
                cells.append([*head, "-", "", f"co-author {named}, no session" if named else "", ""])
            else:
                name = f"{link['agent']}:{short[link['id']]}" if link["id"] else "(unknown)"
                price = cost(link) if link["id"] else ""
                cells.append([*head, name, link["certainty"], _evidence(link), price])
            head = ["", "", ""]
    print_table(columns, cells, masking)
    for line in _summary(found["totals"]):
        click.echo(line)


def _evidence(link: JSON) -> str:
    from clew.catalog.commit_links import EVIDENCE_TEXT

    detail = f" ({link['detail']})" if link["detail"] else ""
    where = f", sub-agent {link['subagent']}" if link["subagent"] else ""
    return f"{EVIDENCE_TEXT[link['evidence']]}{detail}{where}"


def _summary(totals: dict[str, JSON]) -> list[str]:
    from clew.render.tables import counted

    linked = totals["linked"]
    lines = [f"{counted(totals['commits'], 'commit')}, {linked['commits']} with a session that is certain or likely"]
    if linked["sessions"]:
        lines.append(f"cost of {_sum(linked)}")
        lines += [f"  {name}: {_sum(totals[name])}" for name in ("certain", "likely") if totals[name]["sessions"]]
    if totals["possible"]["sessions"]:
        lines.append(f"not counted, because only possible: {_sum(totals['possible'])}")
    return lines


def _sum(total: dict[str, JSON]) -> str:
    from clew.render.tables import cost, count, counted

    tokens = f", {count(total['total_tokens'])} tokens" if total["total_tokens"] is not None else ""
    return f"{counted(total['sessions'], 'session')}: {cost(total) or 'unknown'}{tokens}"
