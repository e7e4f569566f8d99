"""The migrations of both Sage programs: `plan` looks and says, `apply` does. Only `apply` writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from clew.agents.base import SourceFile
from clew.agents.sage_agent import SageAgent
from clew.agents.sage_emacs import SageEmacs
from clew.agents.sage_emacs.locate import is_saved
from clew.host import Host
from clew.io.compress import open_source
from clew.io.paths import refuse_link_to_session
from clew.io.records import read_records
from clew.migrate import encoding, form, records
from clew.migrate.metadata import plan_metadata, rebuild, step_for
from clew.migrate.step import COMPRESSED, Originals, Step, rewrite


def plan(
    place: Path,
    *,
    names: bool = False,
    ids: bool = False,
    tokens: bool = False,
    forms: bool = False,
    metadata: bool = False,
) -> list[Step]:
    """What there is to do in a home, or in one store of a Sage program.

    names: project folders of sage-emacs get their aligned names. ids, tokens: its records get uuid and session_id, and
    estimates. forms: records of Sage Agent get the form it writes today. metadata: metadata.json is made from the log.
    """
    conversations, logs = _stores(place)
    steps: list[Step] = []
    for root in conversations:
        for source in SageEmacs().discover(root):
            steps += _plan_conversation(source, ids, tokens, metadata)
        steps += encoding.plan_encoding(root) if names else []
    for root in logs:
        for source in SageAgent().discover(root):
            steps += _plan_log(source, forms, metadata)
    for path in (path for step in steps for path in (step.path, step.target) if path is not None):
        refuse_link_to_session(path, place)
    return steps


def _stores(place: Path) -> tuple[list[Path], list[Path]]:
    """The stores of sage-emacs and of Sage Agent that `place` is, or holds as a home."""
    if next(SageEmacs().discover(place), None) is not None:
        return [place], []
    if next(SageAgent().discover(place), None) is not None:
        return [], [place]
    host = Host.at(place)
    return list(SageEmacs().roots(host)), list(SageAgent().roots(host))


def _plan_conversation(source: SourceFile, ids: bool, tokens: bool, described: bool) -> list[Step]:
    if source.path.suffix in COMPRESSED or is_saved(source.path):
        return []
    steps: list[Step] = []
    if ids and (changes := records.count(source.path, records.adding_ids(source))):
        steps.append(Step("ids", source.path, None, "records without uuid or session_id", changes))
    if tokens and (changes := records.count(source.path, records.adding_tokens)):
        steps.append(Step("tokens", source.path, None, "records without an estimate", changes))
    if steps and source.sides:
        return [*steps, step_for(source.path.parent / source.sides[0], "the conversation grew")]
    is_current = source.path.name == "conversation.jsonl"
    return [*steps, *(plan_metadata(source) if described and is_current else [])]


def _plan_log(source: SourceFile, forms: bool, described: bool) -> list[Step]:
    steps = plan_metadata(source) if described else []
    with open_source(source.path) as stream:
        changes = sum(record.dialect is not None and form.is_old(record.value) for record in read_records(stream))
    if forms and changes:
        steps.insert(0, Step("form", source.path, None, "records of the older form", changes))
    return steps


def apply(steps: Iterable[Step], stamp: str, done: Callable[[Step], None] | None = None) -> None:
    """Carry out the steps in order. `stamp` names the backups; `done` is told of each step behind it.

    A step that would overwrite something raises, and leaves everything as it was before that step.
    """
    originals = Originals(stamp)
    for step in steps:
        _DOERS[step.kind](step, originals)
        if done is not None:
            done(step)


def _add_ids(step: Step, originals: Originals) -> None:
    source = SageEmacs().locate(step.path)
    rewrite(step.path, records.changed(step.path, records.adding_ids(source)), originals)


def _add_tokens(step: Step, originals: Originals) -> None:
    rewrite(step.path, records.changed(step.path, records.adding_tokens), originals)


def _modernise(step: Step, originals: Originals) -> None:
    source = SageAgent().locate(step.path)
    rewrite(step.path, records.changed(step.path, form.modernising(source)), originals)


_DOERS: dict[str, Callable[[Step, Originals], None]] = {
    "leave": lambda *_: None,
    "rename": encoding.rename,
    "copy": encoding.copy,
    "append": encoding.append,
    "set-aside": encoding.set_aside,
    "ids": _add_ids,
    "tokens": _add_tokens,
    "form": _modernise,
    "metadata": lambda step, originals: rebuild(step.path, originals),
}
