"""clew doctor: check a store and the catalog for damage, and repair it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click
import msgspec

from clew import project_names
from clew.annotations import Annotations, AnnotationsUnreadable
from clew.cli.command_validate import line
from clew.cli.options import common, open_library, wants_json
from clew.cli.output import print_json, print_message
from clew.cli.redaction import redacting_output, redaction
from clew.errors import Busy, ClewError, SourceUnreadable
from clew.host import data_dir
from clew.io.paths import path_for_display
from clew.model import Problem
from clew.model.codes import problem
from clew.sources import moved_projects
from clew.store.change_journal import restore_journals, roll_back_interrupted_restores
from clew.store.doctor import Finding, examine, found
from clew.store.layout import refuse_copy, root_of
from clew.web import user_settings


@click.command("doctor")
@click.argument("places", nargs=-1, type=click.Path(path_type=Path), metavar="[DIR]...")
@click.option("--fix", is_flag=True, help="Repair what can be repaired; without this, nothing is changed.")
@redacting_output
@common
@click.pass_context
def command(
    context: click.Context, /, places: tuple[Path, ...], fix: bool, homes: tuple[str, ...], as_json: bool
) -> int:
    """Check the store in each DIR (a folder that contains `.sage`; default: your home) and the catalog.

    Reports file modes that give others access, truncated logs, unreadable lines, invalid settings, metadata that
    differs from the log, temporary files, damaged or unused copies of files, interrupted undos, locks, folders of
    agents that cannot be read, sources that the last `clew sync` could not read completely, and damage of the files
    with your stars, labels, notes and settings. --fix repairs what it can; copies of files are not removed while a line
    cannot be read, because that line may refer to them. Exit code 1: a problem remains; notes do not count.
    """
    named = [*places, *(Path(home) for home in (*context.find_root().obj["homes"], *homes))]
    noted = _source_problems(context, homes, bool(places))
    for place in places:
        if not root_of(place).is_dir():
            raise SourceUnreadable(f"{root_of(place)}: no such folder")
    for place in named if fix else ():
        refuse_copy(root_of(place))
    rows = [_treat(finding, fix) for place in named or [Path.home()] for finding in examine(place)]
    rows += [_treat(finding, fix) for finding in (*_restores(), *_annotation_problems(), *_settings_problems())]
    reported = {(finding.problem.code, finding.problem.file) for finding, _ in rows}
    rows += [(Finding(problem), False) for problem in noted if (problem.code, problem.file) not in reported]
    json = wants_json(context, as_json)
    masking = redaction(context, for_programs=json)
    if json:
        found = [{**msgspec.to_builtins(finding.problem), "mended": mended} for finding, mended in rows]
        print_json(masking.value(found))
    else:
        for finding, mended in rows:
            click.echo(("repaired: " if mended else "") + line(finding.problem, masking))
        if not rows:
            print_message("no problems found", mask=False)
    return 1 if any(_counts(finding, mended) for finding, mended in rows) else 0


def _source_problems(context: click.Context, homes: tuple[str, ...], is_elsewhere: bool) -> list[Problem]:
    """Folders of agents that cannot be read now, and what the last sync found wrong with sources.

    Nothing where only stores are asked about.
    """
    from clew.catalog import database
    from clew.catalog.queries import problems
    from clew.sources.local import unreadable_folders

    if is_elsewhere:
        return []
    unreadable = unreadable_folders(open_library(context, homes).hosts)
    folders = [problem(one.code, one.reason, file=path_for_display(one.path)) for one in unreadable]
    db = database.open_reader(database.catalog_folder((*context.find_root().obj["homes"], *homes)))
    if db is None:
        return folders
    with closing(db):
        return folders + problems(db)


def _restores() -> list[Finding]:
    """Restores that were cut off."""
    place = data_dir()
    return [
        found("restore-unfinished", path, "", lambda: roll_back_interrupted_restores(place))
        for path in restore_journals(place)
    ]


def _annotation_problems() -> list[Finding]:
    """Damage of the file with stars, labels and notes. It is the only copy, so it is not repaired."""
    annotations = Annotations()
    try:
        annotations.check()
    except (Busy, AnnotationsUnreadable) as error:
        return [found("damaged-annotations", annotations.path, str(error))]
    return []


def _settings_problems() -> list[Finding]:
    """What is wrong with the settings of the web app, names of projects and moved projects. The user wrote them."""
    path = user_settings.settings_path()
    problems = [found("damaged-settings", path, text) for text in user_settings.load().problems]
    moved_path = data_dir() / moved_projects.FILE
    for load, file in ((project_names.load, project_names.names_path()), (moved_projects.load, moved_path)):
        try:
            load()
        except SourceUnreadable as error:
            problems.append(found("damaged-settings", file, str(error)))
    return problems


def _counts(finding: Finding, mended: bool) -> bool:
    return finding.is_wrong and not mended and (finding.problem.severity != "note" or finding.mend is not None)


def _treat(finding: Finding, fix: bool) -> tuple[Finding, bool]:
    if not fix or finding.mend is None:
        return finding, False
    try:
        finding.mend()
    except (OSError, ClewError) as error:
        print_message(f"clew: {finding.problem.file}: cannot be repaired: {error}")
        return finding, False
    return finding, True
