"""The list of what a conversion loses, and of what it notes, for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from clew.cli.output import print_message
from clew.convert.losses import Loss
from clew.render.tables import counted

_MAX_PRINTED = 20


def print_losses(losses: Sequence[Loss], all_of_them: str = "`clew convert --dry-run --json` lists all") -> None:
    """Print the losses, then the notes; of many only the first, and where all of them are."""
    ordered = sorted(losses, key=lambda loss: loss.is_note)
    for loss in ordered[:_MAX_PRINTED]:
        place = f"#{loss.message}: " if loss.message is not None else ""
        print_message(f"  {'note' if loss.is_note else 'lost'}: {place}{loss.what}: {loss.why}")
    if len(ordered) > _MAX_PRINTED:
        print_message(f"  and {len(ordered) - _MAX_PRINTED} more; {all_of_them}")


def print_summary_of_losses(sessions: Iterable[Sequence[Loss]]) -> None:
    """Print how much of each kind several sessions lose, the losses before the notes."""
    counts: Counter[tuple[bool, str, str]] = Counter()
    sessions_with: Counter[tuple[bool, str, str]] = Counter()
    for losses in sessions:
        found = Counter[tuple[bool, str, str]]()
        for loss in losses:
            found[loss.is_note, loss.kind or loss.what, loss.why] += loss.count or 1
        counts.update(found)
        sessions_with.update(found.keys())
    for key in sorted(counts, key=lambda key: (key[0], -counts[key])):
        is_note, kind, why = key
        where = counted(sessions_with[key], "session")
        print_message(f"  {'note' if is_note else 'lost'}: {counts[key]} x {kind}, in {where}: {why}")
