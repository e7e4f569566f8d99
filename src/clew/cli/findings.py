"""What `clew redact scan` says: where each secret lies, and never what it is."""

from __future__ import annotations

import sys

import click

from clew.agents.secret_scan import find_secrets
from clew.cli.each import say_unscanned
from clew.cli.output import print_json, print_table, say
from clew.cli.redacting import Redaction
from clew.errors import UsageError
from clew.library import StoredSession
from clew.model.json import JSON


class Report:
    """The findings of all sessions; printed at the end, because a table wants to know its widths."""

    def __init__(self, masking: Redaction, *, as_json: bool, reveal: bool) -> None:
        if reveal and (as_json or not (sys.stdin.isatty() and sys.stdout.isatty())):
            raise UsageError("--reveal prints to a terminal only, and asks there first")
        self._masking, self._as_json, self._reveal = masking, as_json, reveal
        self.count = 0
        self._rows: list[dict[str, JSON]] = []
        self._values: dict[int, str] = {}
        """What was found, by the number of its row."""

    def add(self, session: StoredSession) -> None:
        """Scan one session."""
        if not self._masking.is_on:
            return
        redactor = self._masking.redactor()
        found = list(find_secrets(session.agent, session.source, redactor))
        # The id and the path of a session may hold a secret, and neither is printed in clear.
        place = {"agent": session.agent.id, "session": redactor.text(session.id)}
        place["path"] = redactor.text(str(session.path))
        for secret in found:
            if self._reveal and secret.value is not None:
                self._values[len(self._rows)] = secret.value
            self._rows.append({**place, **secret.without_value()})
        self.count = len(self._rows)

    def finish(self, unreadable: int) -> None:
        """Print what was found, and how many sessions could not be scanned."""
        if self._as_json:
            print_json({"rules": self._masking.version, "findings": self._rows})
        elif self._rows:
            self._print()
        elif not unreadable:
            say("nothing found")
        say_unscanned(unreadable)

    def _print(self) -> None:
        from clew.render.tables import Column
        from clew.render.text_safety import one_line

        shown = self._may_reveal()
        columns = [Column("where"), Column("line", right=True), Column("kind"), Column("found", flexible=True)]
        print_table(
            columns,
            [
                [
                    f"{row['agent']}:{row['session']}" + (f"#{row['message']}" if row["message"] is not None else ""),
                    str(row["line"]),
                    row["kind"],
                    one_line(self._values.get(number, str(row["masked"]))) if shown else str(row["masked"]),
                ]
                for number, row in enumerate(self._rows)
            ],
            None,
        )

    def _may_reveal(self) -> bool:
        """True when somebody at the terminal has typed yes."""
        if not self._reveal:
            return False
        click.echo(f"Print {len(self._rows)} findings in clear? Type yes: ", nl=False, err=True)
        return sys.stdin.readline().strip() == "yes"
