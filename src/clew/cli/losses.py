"""The list of what a conversion loses, and of what it notes, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from clew.cli.output import print_message
from clew.convert.losses import Loss

_MAX_PRINTED = 20


def print_losses(losses: Sequence[Loss], all_of_them: str = "`clew convert --dry-run --json` lists all") -> None:
    """Print the losses, then the notes; of many only the first, and where all of them are."""
    ordered = sorted(losses, key=lambda loss: loss.is_note)
    for loss in ordered[:_MAX_PRINTED]:
        place = f"#{loss.message}: " if loss.message is not None else ""
        print_message(f"  {'note' if loss.is_note else 'lost'}: {place}{loss.what}: {loss.why}")
    if len(ordered) > _MAX_PRINTED:
        print_message(f"  and {len(ordered) - _MAX_PRINTED} more; {all_of_them}")
