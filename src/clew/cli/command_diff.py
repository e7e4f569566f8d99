"""clew diff: how files changed between two messages, or by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import click

from clew.agents.file_evidence import RESTORATIONS, KnownContent
from clew.cli.completion import complete_session
from clew.cli.file_history import open_file_history, range_in
from clew.cli.options import choosing_project, common, wants_json
from clew.cli.output import print_json, print_message
from clew.cli.redaction import redacting, redaction
from clew.file_history.diffs import unified_diff
from clew.file_history.history import FileHistory
from clew.file_history.rows import answer_row, describe_certainty
from clew.file_history.timeline import OBSERVATIONS, Answer, Evidence, is_continued
from clew.io.paths import escape_invalid_utf8
from clew.model.json import JSON


class Pair(NamedTuple):
    """A file at two times."""

    before: Answer
    after: Answer


@click.command("diff")
@click.argument("reference", metavar="REF#A[..B]", shell_complete=complete_session)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--unproved", is_flag=True, help="Also compare content that is only inferred.")
@redacting
@choosing_project
@common
@click.pass_context
def command(
    context: click.Context,
    /,
    reference: str,
    paths: tuple[str, ...],
    unproved: bool,
    homes: tuple[str, ...],
    as_json: bool,
) -> int:
    """Show how files differ between two messages (REF#3..12), or what one message changed (REF#12).

    A message changed what its tool calls changed, or the calls whose results it holds. Files whose content is not known
    at both ends are named on stderr. Secrets are masked unless --redact none is given. Exit code 1: no known
    difference.
    """
    reference, first, last = range_in(reference)
    session, history = open_file_history(context, homes, reference)
    pairs = _by_one(history, first) if last is None else _between(history, first, last)
    if paths:
        wanted = {history.resolve_path(path) for path in paths}
        pairs = [pair for pair in pairs if pair.before.path in wanted]
    diffs, unknown = _compare(history, pairs, unproved)
    masking = redaction(context, for_programs=wants_json(context, as_json))
    mask = masking.texts(session)
    diffs = [{**one, "diff": escape_invalid_utf8(mask(one["diff"], one["path"]))} for one in diffs]
    if wants_json(context, as_json):
        print_json(masking.value([*diffs, *({"diff": None, **_ends(pair)} for pair in unknown)]))
    else:
        _print(diffs, unknown)
    for words in history.cut_off():
        print_message(words)
    return 0 if diffs else 1


def _between(history: FileHistory, first: int, last: int) -> list[Pair]:
    return [Pair(before, after) for before, after in zip(history.all_at(first), history.all_at(last), strict=True)]


def _by_one(history: FileHistory, message: int) -> list[Pair]:
    """What a message did: for each file the state before the first of its doings, and after the last.

    Where something else changed it between two of them, that is left out, and there are two pairs.
    """
    history.require(message)
    doings: dict[str, list[list[Evidence]]] = {}
    for evidence in history.all_evidence():
        if evidence.action not in (*OBSERVATIONS, *RESTORATIONS, "outside") and message in (
            evidence.call,
            evidence.done,
        ):
            turns = doings.setdefault(evidence.path, [])
            if turns and is_continued(turns[-1][-1], evidence):
                turns[-1].append(evidence)
            else:
                turns.append([evidence])
    chains = (all_evidence for _, turns in sorted(doings.items()) for all_evidence in turns)
    return [Pair(_end(all_evidence[0], False), _end(all_evidence[-1], True)) for all_evidence in chains]


def _end(evidence: Evidence, is_after: bool) -> Answer:
    found = evidence.after if is_after else evidence.before
    if found is None:
        return Answer(
            evidence.path,
            "unknown",
            None,
            evidence=evidence,
            is_after=is_after,
            reason=evidence.note or "no record mentions it",
        )
    return Answer(evidence.path, found.certainty, found, evidence.how, evidence, is_after)


def _compare(history: FileHistory, pairs: Sequence[Pair], unproved: bool) -> tuple[list[dict[str, JSON]], list[Pair]]:
    allowed = ("exact", "text", "unproved") if unproved else ("exact", "text")
    known = [pair for pair in pairs if all(end.certainty in allowed for end in pair)]
    differing = [pair for pair in known if not _is_same(pair) or _modes(pair) is not None]
    contents = history.contents([end for pair in differing for end in pair])
    diffs = []
    for pair, before, after in zip(differing, contents[::2], contents[1::2], strict=True):
        text = _diff(history, pair, before, after)
        if text:
            diffs.append({"diff": text, **_ends(pair)})
    return diffs, [pair for pair in pairs if pair not in known]


def _is_same(pair: Pair) -> bool:
    """True where both ends are equal as far as both are known."""
    one, other = pair.before.fingerprint, pair.after.fingerprint
    if one is None or other is None or pair.before.certainty == pair.after.certainty == "exact":
        return one == other
    return one.text == other.text


def _diff(history: FileHistory, pair: Pair, before: KnownContent | None, after: KnownContent | None) -> str:
    if before is None or after is None:
        return ""
    base = history.workspace + "/" if history.workspace else ""
    return unified_diff(pair.before.path.removeprefix(base), before, after, _modes(pair))


def _modes(pair: Pair) -> tuple[int, int] | None:
    """The modes that one message found and left, where they differ; not known between two messages."""
    first, last = pair.before.evidence, pair.after.evidence
    if first is None or last is None or pair.before.is_after or not pair.after.is_after:
        return None
    if first.modes is None or last.modes is None or first.call != last.call or first.modes[0] == last.modes[1]:
        return None
    return first.modes[0], last.modes[1]


def _ends(pair: Pair) -> dict[str, JSON]:
    return {
        "path": escape_invalid_utf8(pair.before.path),
        "before": answer_row(pair.before),
        "after": answer_row(pair.after),
    }


def _print(diffs: list[dict[str, JSON]], unknown: list[Pair]) -> None:
    from clew.render.text_safety import visible

    for one in diffs:
        click.echo(visible(one["diff"]), nl=False)
    for pair in unknown:
        end = pair.before if pair.before.certainty in ("unknown", "unproved") else pair.after
        print_message(f"{escape_invalid_utf8(end.path)}: {describe_certainty(end)}")
