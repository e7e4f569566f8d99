"""No masked output holds a canary, whatever member of a session it stands in, whatever command or page gives it out."""

from __future__ import annotations

import http.client
import json
import re
import shlex
import shutil
import zlib
from collections import Counter
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import click
import duckdb
import pytest
from click.testing import CliRunner

from clew.catalog.ids import session_key
from clew.cli.main import main
from clew.host import Host
from clew.library import Library, StoredSession
from clew.model.json import JSON
from clew.web.routes import VIEWS as PAGE_VIEWS
from tests.redact.canaries import AGENTS, VARIANTS, Canary, Finder, Planted, write_home
from tests.warehouse.postgres.conftest import database, server, url  # noqa: F401 - fixtures
from tests.warehouse.postgres.server import Server
from tests.warehouse.postgres.test_canaries import dumped
from tests.web.shown import Shown, shown

PARTS = "day agent model project branch session tool".split()
"""What a row of `clew stats` can stand for."""
VIEWS = "sessions messages blocks tool_calls usage usage_days file_changes todos sources".split()
"""The tables that `clew sql` tells people of."""
TABLES = "session source side_file string text_chunk todo change commit_mention watched_folder".split()
"""What the catalog really consists of, which can be asked as well."""

INVOCATIONS: dict[str, tuple[str, ...]] = {
    "": ("", "--json"),
    "list": ("list", "list --subagents", "list --json", "list -n 1"),
    "show": (
        "show {ref}",
        "show {ref} --detail full",
        "show {ref} --json",
        "show {ref} --raw",
        "show {ref}#1",
        "show {ref}#{last} --detail full",
        "show {ref}#{last} --json",
        "show {ref}#{last} --file {file} --unproved",
        "show {ref}#{last} --file {file}",
    ),
    "search": (
        "search the -n 500",
        "search the -n 500 --json",
        "search tide* OR bell* --newest",
        "search --substring e -n 500",
        "search --substring e -n 500 --json",
        "search --substring AKIA -n 500",
        "search --substring glpat- -n 500 --json",
        "search --regex [A-Za-z0-9]{{16}} -n 500",
        "search --regex [A-Za-z0-9]{{16}} -n 500 --json",
        "search --regex . --in titles -n 500",
        "search --regex . --in files -n 500 --json",
        "search --regex . --in tools -n 500",
        "search --regex . --in thinking -n 500",
    ),
    "stats": (
        "stats --blocks",
        "stats --blocks --json",
        *(f"stats --by {by}{form}" for by in PARTS for form in ("", " --json", " --csv")),
    ),
    "statusline": ("statusline", "statusline --json"),
    "tail": (
        "tail {ref}",
        "tail {ref} -n 1000 --detail full",
        "tail {ref} -n 1000 --json",
        "tail {ref} -f --patience 0",
    ),
    "graph": tuple(f"graph {{ref}} {form}" for form in ("", "--as mermaid", "--as dot", "--json", "--json --tree")),
    "files": ("files {ref}", "files {ref} --copies", "files {ref} --changes --json", "files {ref} --copies --json"),
    "diff": (
        "diff {ref}#1..{last} --unproved",
        "diff {ref}#1..{last} --json",
        "diff {ref}#{change}",
        "diff {ref}#{change} --json --unproved",
        "diff {ref}#1..{last} {file}",
    ),
    "restore": (
        "restore {ref}#{last} --into {empty}",
        "restore {ref}#{last} --into {empty} --unproved --json",
        "restore {ref}#{last} {file} --into {empty}",
    ),
    "blame": (
        "blame {disk} --as {file}",
        "blame {disk} --as {file} --json",
        "blame {disk}:1 --as {file}",
        "blame {disk} --as {file} --to agent-trace",
    ),
    "export": (
        "export --to ndjson",
        "export --to ndjson -o {out}/all.ndjson.gz --gz",
        "export -o {out}/documents",
        "export --to markdown -o {out}/markdown",
        "export --site {out}/site",
        "export --site {out}/site --carry",
        "export -o {out}/native --layout project",
        "export -o {out}/native --layout date",
        "export {ref} --to json",
        "export {ref} --to markdown --detail prompts",
        "export {ref} --to markdown --detail conversation",
        "export {ref} --to html -o {out}/page.html",
        "export {ref} -o {out}/session.json.zst --zst",
        "export {ref} --to html -o {out}/page.html --carry",
        "export --to atif -o {out}/atif",
        "export {ref} --to atif",
        "export --to otel --with-content -o {out}/spans.jsonl",
        "export {ref} --to otel",
        "export --to hf -o {out}/dataset",
    ),
    "convert": (
        "convert {ref} --to {other} --home {out} --dry-run",
        "convert {ref} --to {other} --home {out} --dry-run --json",
        "convert {ref} --to {other} --home {out} --allow-loss --json",
        *(f"convert {{ref}} --to {agent} --home {{out}} --allow-loss" for agent in AGENTS),
    ),
    "import": (
        "import {masked}.ndjson -o {out}/home",
        "import {masked}.ndjson -o {out}/home --json",
        "import {masked}.ndjson --stdout",
        "import {masked}.html --stdout",
    ),
    "verify": ("verify", "verify --json", "verify {ref}"),
    "validate": ("validate --level note", "validate --level note --json", "validate {ref} --level note"),
    "redact files": ("redact files {native}", "redact files {native} -o {out}/copy", "redact {native}"),
    "redact scan": ("redact scan", "redact scan --json", "redact scan {ref}"),
    "redact scrub": ("redact scrub {ref}", "redact scrub {ref} --json"),
    "bundle create": ("bundle create -o {out}/all.tar", "bundle create {ref} -o {out}/one.tar --json"),
    "archive": ("archive", "archive --json"),
    "archive list": ("archive list", "archive list --json", "archive list --captures --json"),
    "archive verify": ("archive verify", "archive verify --json"),
    "archive restore": ("archive restore --to {raw}", "archive restore {id} --to {raw} --json --force"),
    "archive hold add": ("archive hold add {ref} --reason seen", "archive hold add --all --reason seen --json"),
    "archive hold list": ("archive hold list", "archive hold list --json"),
    "archive hold remove": ("archive hold remove 1 --reason seen", "archive hold remove 2 --reason seen --json"),
    "archive prune": ("archive prune --keep-days 0", "archive prune --keep-days 0 --json"),
    "lake write": ("lake write {lake} --level redacted", "lake write {lake} --level redacted --json"),
    "lake verify": ("lake verify {lake}", "lake verify {lake} --json"),
    "lake compact": ("lake compact {lake} --grace 0", "lake compact {lake} --grace 0 --json"),
    "migrate": ("migrate {home} -n", "migrate {home} -n --json"),
    "record": ("record --store {out} --session canaries",),
    "branches": ("branches {own}", "branches {own} --json"),
    "branch": (
        "branch {own}",
        "branch {own} --json",
        "branch {own} #1 --compare #{last}",
        "branch {own} #1 --compare #{last} --json",
    ),
    "undo": ("undo {own} --to #1 --dry-run --in {empty}", "undo {own} --to #1 --dry-run --in {empty} --json"),
    "redo": ("redo {own} --dry-run --in {empty}",),
    "erase": ("erase {own}", "erase {own} --json", "erase {own} #1"),
    "todos": ("todos {ref}", "todos {ref} --json", "todos {ref}#{last}"),
    "doctor": ("doctor {home}", "doctor {home} --json"),
    "sync": ("sync", "sync --full --json"),
    "sql": (
        *(f"sql 'SELECT * FROM {view}'{form}" for view in VIEWS for form in ("", " --json", " --csv")),
        *(f"sql 'SELECT * FROM {table}' --json" for table in TABLES),
    ),
    "agents": ("agents", "agents --json"),
    "sources": ("sources",),
    "sources list": ("sources list --json",),
    "sources add": ("sources add {home} --name planted",),
    "sources check": ("sources check", "sources check --json"),
    "sources remove": ("sources remove planted",),
    "resume": ("resume {ref} --print", "resume {ref} --json"),
    "annotate set": ("annotate set {ref} --star --label seen", "annotate set {ref}#1 --note read --json"),
    "annotate show": ("annotate show {ref}", "annotate show {ref} --json"),
    "annotate list": ("annotate list", "annotate list --json"),
    "annotate export": ("annotate export",),
}
"""How each command is run. What holds `{ref}` is run for several sessions of the home, `{file}` for several files."""

ELSEWHERE = {
    "web": "test_no_page_holds_a_canary asks for its pages",
    "mcp install": "test_install masks the secrets of other servers in the file",
    "mcp uninstall": "test_install masks the secrets of other servers in the file",
    "hook": "a group without output of its own",
    "hook install": "changes files of agents as `mcp install` does",
    "hook uninstall": "changes files of agents as `mcp uninstall` does",
    "hook run": "test_hook_canaries looks into the list of its runs",
    "hook status": "test_hook_canaries looks at its output",
    "skill": "a group without output of its own",
    "skill show": "prints a text that comes with clew",
    "skill install": "changes files of agents as `mcp install` does",
    "skill uninstall": "changes files of agents as `mcp uninstall` does",
    "mcp": "test_no_answer_to_an_agent_holds_a_canary calls its tools",
    "commits": "needs a repository; tests/commits masks subjects, trailers and titles",
    "push": "test_no_row_of_a_server_holds_a_canary looks into the database",
    "totals": "prints how many rows it wrote",
    "watch": "shows sessions of the last hour, and these are older; tests/cli/test_watch.py has one with a secret",
    "pick": "needs a terminal; masks titles and projects as `list` does, and previews as `show` does",
    "completion": "prints a script; test_completion masks a title",
    "schema": "prints the schema of documents, which knows of no session",
    "demo": "writes the sessions that come with clew, and reads none",
    "clean": "leaves files alone that were written within a day, as all of these were",
    "sources map": "stores the two paths that it is given, and reads no session",
    "sources unmap": "forgets a path that it is given, and reads no session",
    "sources name": "stores the names that it is given, and reads no session",
    "sources unname": "forgets a name that it is given, and reads no session",
    "annotate": "a group without output of its own",
    "annotate import": "reads a file of annotations, and prints how many",
    "sources fetch": "copies files from other machines, and prints how many",
    "archive hold": "a group without output of its own",
    "bundle": "a group without output of its own",
    "bundle verify": "prints findings about files that `bundle create` wrote, which is looked at",
    "redact": "`redact FILE` is `redact files FILE`",
    "lake": "a group without output of its own",
    "lake spark-job": "prints the path of a program that comes with clew",
}
"""Commands that are looked at in another test, or that print nothing of sessions."""

REAL_NAMES = {"resume": ("path of the project",)}
"""Members that a command must give out as they are: `cd [REDACTED]` leads nowhere."""

SILENT = frozenset(
    {
        "",
        "agents",
        "agents --json",
        "annotate export",
        "annotate set {ref} --star --label seen",
        "annotate set {ref}#1 --note read --json",
        "annotate show {ref}",
        "annotate show {ref} --json",
        "archive",
        "archive --json",
        "archive hold add --all --reason seen --json",
        "archive hold add {ref} --reason seen",
        "archive hold list",
        "archive hold list --json",
        "archive hold remove 1 --reason seen",
        "archive hold remove 2 --reason seen --json",
        "archive list",
        "archive list --captures --json",
        "archive restore --to {raw}",
        "archive verify",
        "archive verify --json",
        "erase {own}",
        "erase {own} --json",
        "erase {own} #1",
        "graph {ref} --json",
        "graph {ref} --json --tree",
        "lake compact {lake} --grace 0",
        "lake compact {lake} --grace 0 --json",
        "lake verify {lake}",
        "lake verify {lake} --json",
        "redo {own} --dry-run --in {empty}",
        "sources",
        "sources add {home} --name planted",
        "sources check",
        "sources check --json",
        "sources list --json",
        "sources remove planted",
        "sql 'SELECT * FROM blocks'",
        "sql 'SELECT * FROM blocks' --csv",
        "sql 'SELECT * FROM blocks' --json",
        "sql 'SELECT * FROM change' --json",
        "sql 'SELECT * FROM commit_mention' --json",
        "sql 'SELECT * FROM todo' --json",
        "statusline",
        "statusline --json",
        "stats --by agent --csv",
        "stats --by day --csv",
        "sync",
        "sync --full --json",
    }
)
"""Invocations that give out counts, ids, names of clew's own and what the user wrote, and nothing of a session."""

NEVER_WHOLE = frozenset(
    {
        "--json",
        "redact scan",
        "redact scan --json",
        "redact scan {ref}",
        "redact scrub {ref}",
        "redact scrub {ref} --json",
    }
)
"""Invocations that cannot be told to leave secrets as they are."""

EVERY_SESSION = ("show {ref} --detail full", "convert {ref} --to {other} --home {out} --allow-loss --json")
"""Invocations that are run for every session."""
SESSIONS_EACH = {"valid": 2, "odd": 1}
"""For so many sessions of a home all others are run."""
FILES_EACH = 2
"""So many files of a session are asked for."""
MOST_SHOWN = 12
"""So many members of each output are named when a test fails."""
USAGE = 2
"""The exit code for a command that was not understood."""
EXPECTED = re.compile("is the session of a sub-agent|the session has no messages to convert")
"""What may be wrong with a session for a command."""


class Leak(NamedTuple):
    """A canary in an output."""

    agent: str
    member: str
    output: str


class Subject:
    """A home with canaries, and the words that stand for its parts in the table."""

    def __init__(self, planted: Planted, folder: Path) -> None:
        self.planted, self.folder = planted, folder
        self.finder = Finder(planted.canaries)
        self.leaks: set[Leak] = set()
        self.refused: list[str] = []
        self._facts: dict[str, Facts] = {}
        for name in ("empty", "raw"):
            (folder / name).mkdir()
        self.run("sync")
        self.sessions = list(Library(Host.at(planted.home)).sources())
        assert self.sessions, "no session is found in the home"
        self.words: dict[str, str] = {
            "home": str(planted.home),
            "empty": str(folder / "empty"),
            "raw": str(folder / "raw"),
            "lake": str(folder / "lake"),
            "masked": str(folder / "masked"),
            "whole": str(folder / "whole"),
            "other": next(agent for agent in AGENTS if agent != planted.agent),
        }

    def run(self, line: str) -> Any:
        """Run a command on the home."""
        words = ["--home", str(self.planted.home), *shlex.split(line)]
        given = self._messages() if line.startswith("record") else None
        done = CliRunner().invoke(main, words, input=given)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        is_refused = done.exit_code == USAGE and not EXPECTED.search(done.stderr)
        if is_refused or "internal error" in done.stderr:
            self.refused.append(f"clew {line}\n  {done.stderr.strip()}")
        return done

    def lines(self, template: str) -> Iterator[str]:
        """A template of the table, with everything put in that it can stand for."""
        for name, profile in (("masked", "secrets"), ("whole", "none")):
            if f"{{{name}}}" in template:
                self._export(name, profile)
        if "{own}" in template and self.planted.agent != "sage-agent":
            return
        if not re.search(r"\{(?:ref|own|id|file|native|last|change)\}", template):
            yield self._filled(template)
            return
        for session in self._chosen(template):
            facts = self._facts_of(f"{session.agent.id}:{session.id}")
            words = {
                "ref": f"{session.agent.id}:{session.id}",
                "own": session.id,
                "id": session.id,
                "native": shlex.quote(str(session.path)),
                "last": str(facts.last),
                "change": str(facts.change),
            }
            if "{file}" not in template:
                yield self._filled(template, **words)
                continue
            for file, disk in facts.files.items():
                yield self._filled(template, **words, file=shlex.quote(file), disk=shlex.quote(str(disk)))

    def _export(self, name: str, profile: str) -> None:
        """Documents of the home, for `clew import`."""
        file = self.folder / name
        self.run(f"export --to ndjson -o {file}.ndjson --force --redact {profile}")
        self.run(f"export {self.sessions[0].path} --carry -o {file}.html --force --redact {profile}")

    def _chosen(self, template: str) -> list[StoredSession]:
        """Some sessions of the home, others for each template; all, where the template says so."""
        if template in EVERY_SESSION:
            return self.sessions
        first = zlib.crc32(template.encode()) % len(self.sessions)
        return (self.sessions[first:] + self.sessions[:first])[: SESSIONS_EACH[self.planted.variant]]

    def _filled(self, template: str, **words: str) -> str:
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        return template.format(**self.words, **words, out=out)

    def _facts_of(self, ref: str) -> Facts:
        if ref not in self._facts:
            messages = map(json.loads, self.run(f"show {ref} --json").stdout.splitlines())
            rows: list[dict[str, JSON]] = json.loads(self.run(f"files {ref} --json").stdout or "[]")
            last = max((message["index"] for message in messages), default=1)
            change = max((row["message"] for row in rows if row["action"] != "read"), default=1)
            files = sorted({str(row["path"]) for row in rows})[:FILES_EACH]
            self._facts[ref] = Facts(last, change, {file: self._on_disk(f"{ref}#{last}", file) for file in files})
        return self._facts[ref]

    def _on_disk(self, message: str, file: str) -> Path:
        """A file as it was at the end of a session."""
        path = self.folder / "disk" / str(len(self._facts)) / Path(file).name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.run(f"show {message} --file {shlex.quote(file)} --unproved").stdout_bytes or b"\n")
        return path

    def _messages(self) -> bytes:
        """Messages for `clew record`, with a canary in every member."""
        tokens = [canary.token for canary in self.planted.canaries]
        lines = [{"role": "user", "content": f"use {token}", f"extra {token}": token} for token in tokens]
        return b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    def see(self, output: str, content: bytes) -> bool:
        """Note the canaries in an output; True where there are some."""
        return self._note(output, self.finder.found(content))

    def see_files(self, output: str, folder: str = "out") -> bool:
        """Note the canaries in the files that a command wrote, and in their names."""
        found = self.finder.found_below(self.folder / folder)
        for name, held in found.items():
            self._note(f"{output} -> {_kind(name)}", held)
        return bool(found)

    def _note(self, output: str, held: set[Canary]) -> bool:
        kept = REAL_NAMES.get(output.split(" ")[0], ())
        held = {canary for canary in held if not canary.member.startswith(kept)}
        self.leaks |= {Leak(self.planted.agent, canary.member, output) for canary in held}
        return bool(held)

    def told(self) -> str:
        """What leaked, for people: each output with the members in it."""
        by_output: dict[str, list[str]] = {}
        for leak in sorted(self.leaks):
            by_output.setdefault(leak.output, []).append(leak.member)
        lines = [*self.refused, f"{len(self.leaks)} leaks of {self.planted.agent} ({self.planted.variant})"]
        for output, members in sorted(by_output.items()):
            lines.append(f"  clew {output}")
            lines += [f"    {member}" for member in members[:MOST_SHOWN]]
            lines += [f"    and {len(members) - MOST_SHOWN} more"] if len(members) > MOST_SHOWN else []
        return "\n".join(lines)


class Facts(NamedTuple):
    """What a session has."""

    last: int
    """The number of its last message."""
    change: int
    """The number of a message that changed files."""
    files: dict[str, Path]
    """Files that it tells of, and where their content lies."""


def _kind(name: str) -> str:
    """The end of a file's name, without what differs from session to session."""
    return f"*{''.join(Path(name).suffixes[-2:])[:30]}" if "." in name else "a folder"


@pytest.fixture
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Subject:
    agent, variant = request.param
    return Subject(write_home(agent, variant, tmp_path / "home"), tmp_path)


every_home = pytest.mark.parametrize(
    "subject", [(agent, variant) for agent in AGENTS for variant in VARIANTS], indirect=True, ids="-".join
)


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command of clew, with the words that lead to it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path}{name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")


COMMANDS = dict(commands(main))


def masking(command: str, profile: str) -> str:
    """The option that chooses what is masked, where the command has one."""
    found = COMMANDS.get(command, main)
    return f" --redact {profile}" if any(option.name == "redact" for option in found.params) else ""


def test_every_command_is_looked_at() -> None:
    assert set(COMMANDS) - set(INVOCATIONS) - set(ELSEWHERE) == set(), "say in the table how to run it, or why not"
    assert (set(INVOCATIONS) | set(ELSEWHERE)) - set(COMMANDS) == {""}, "there is no such command"


@pytest.mark.slow
@every_home
def test_every_canary_is_in_some_output_that_is_not_masked(subject: Subject) -> None:
    """Else nothing that is masked could be found out to be none."""
    found = subject.finder.found(subject.run("export --to ndjson --redact none").stdout_bytes)
    found |= subject.finder.found(subject.run("list --json --redact none").stdout_bytes)
    subject.run("archive")
    subject.run(f"archive restore --to {subject.words['raw']}")
    for held in subject.finder.found_below(subject.folder / "raw").values():
        found |= held
    missing = sorted(canary.member for canary in set(subject.planted.canaries) - found)
    assert not missing, "\n".join(missing)


@pytest.mark.slow
@every_home
def test_no_command_gives_out_a_canary(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    # `statusline` would start a process that is still running when the test ends.
    monkeypatch.setattr("clew.cli.command_statusline.Popen", lambda *_, **__: None)
    crowded = Counter[str]()
    for command, templates in INVOCATIONS.items():
        for template in templates:
            for line in subject.lines(template):
                done = subject.run(line + masking(command, "secrets"))
                subject.see(template, done.stdout_bytes)
                subject.see(f"{template} (stderr)", done.stderr_bytes)
                subject.see_files(template)
                crowded[template] += "crowded" in done.stderr
    subject.see("lake write -> rows", read_lake(subject.folder / "lake"))
    subject.see_files("lake write", "lake")
    assert not subject.leaks, subject.told()
    assert not subject.refused, "\n".join(subject.refused)
    assert +crowded == {}, "hidden unread: the canaries stand too densely to prove anything"


@pytest.mark.slow
@every_home
def test_scrubbed_files_hold_no_canary(subject: Subject) -> None:
    done = subject.run(f"redact scrub --agent {subject.planted.agent} --write")
    assert done.exit_code == 0, done.stderr
    for session in subject.sessions:
        for path in (session.path, *(session.path.parent / name for name in session.source.parts)):
            subject.see(f"redact scrub --write -> {_kind(path.name)}", path.read_bytes())
    assert not subject.leaks, subject.told()


def read_lake(folder: Path) -> bytes:
    """All rows of the tables of a lake, and what the files say of themselves."""
    text = []
    for path in sorted(folder.rglob("*.parquet")):
        rows = duckdb.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
        about = duckdb.execute("SELECT * FROM parquet_kv_metadata(?)", [str(path)]).fetchall()
        text.append(f"{rows}{about}")
    assert text, "the lake is empty"
    return "\n".join(text).encode()


@pytest.mark.slow
def test_every_invocation_can_give_out_a_canary(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Without masking, each shows one in the home of some agent: else to look at it proves nothing."""
    left = {(command, template) for command, templates in INVOCATIONS.items() for template in templates}
    for agent, variant in (*((agent, "valid") for agent in AGENTS), ("claude-code", "odd")):
        folder = tmp_path_factory.mktemp(agent)
        subject = Subject(write_home(agent, variant, folder / "home"), folder)
        subject.run("archive")
        for session in subject.sessions:
            subject.run(f"annotate set {session.agent.id}:{session.id} --star")
        left = {pair for pair in left if pair[1] not in SILENT | NEVER_WHOLE and not _shows(subject, *pair)}
    assert not left, "\n".join(sorted(template for _, template in left))


def _shows(subject: Subject, command: str, template: str) -> bool:
    template = template.replace("--level redacted", "--level raw").replace("{masked}", "{whole}")
    for line in subject.lines(template):
        done = subject.run(line + masking(command, "none"))
        said = done.stdout_bytes + done.stderr_bytes
        if command == "lake write":
            said += read_lake(subject.folder / "lake")
        if subject.finder.found(said) or subject.see_files(template):
            return True
    return False


LINK = re.compile(r'(?:href|src|action|data-load|data-more|data-[a-z]+)="(/[^"]*)"')
MOST_ALIKE = {"valid": 8, "odd": 4}
MOST_ALIKE_OF_OTHERS = 2
"""So many pages of one kind are asked for: of one route, with the same parameters. The pages of all agents are made by
the same code, so fewer are asked for where the sessions are not of Claude Code."""
STARTING_PAGES = (
    *("/", "/search?q=the", "/search?q=tide", "/running", "/secrets", "/usage.csv"),
    *("/settings/projects", "/settings/project-suggestions"),
    *("/session-list", "/session-list?group=project", "/palette", "/palette?q=the"),
    *("/annotations", "/annotations.json"),
)
SESSION_PAGES = (
    *("print", "outline", "graph", "window/0", "more/1/0", "hits?q=the", "message/1.md", "annotations"),
    *("resume", "continue"),
    *(f"export/{kind}?redact={profile}" for kind in ("html", "markdown", "json") for profile in ("secrets", "none")),
)
"""Where crawling begins: pages that only scripts ask for have no link."""
SILENT_PAGES = frozenset(
    {
        *("/running", "/secrets", "/annotations.json", "/settings", "/settings/projects"),
        "/session/{agent}/{identity}/hits",
    }
)
"""Pages that show nothing of a session but what the user wrote or searched for, masked or not."""


@pytest.mark.slow
@every_home
def test_no_page_holds_a_canary(subject: Subject) -> None:
    with shown(subject.planted.home, subject.folder / "catalog", "secrets") as app:
        seen = crawl(subject, app)
        session = subject.sessions[0]
        live = f"/session/{session.agent.id}/{session.id}/live"
        subject.see("web /session/{agent}/{identity}/live", first_event(app, live))
    assert not subject.leaks, subject.told()
    if subject.planted.agent == "claude-code":
        assert set(PAGE_VIEWS) - seen == set(), "no link leads there"


@pytest.mark.slow
@pytest.mark.parametrize("subject", [("claude-code", "valid")], indirect=True, ids="-".join)
def test_every_page_can_hold_a_canary(subject: Subject) -> None:
    """Without masking, each page shows one: else to look at it proves nothing."""
    with shown(subject.planted.home, subject.folder / "catalog") as app:
        crawl(subject, app)
    assert set(PAGE_VIEWS) - {leak.output.removeprefix("web ") for leak in subject.leaks} == SILENT_PAGES


def crawl(subject: Subject, app: Shown) -> set[str]:
    """Ask for the pages that links lead to, and for the same as parts of pages; the routes that were asked for."""
    waiting = list(STARTING_PAGES)
    for session in subject.sessions:
        base, key = f"/session/{session.agent.id}/{session.id}", session_key(session.agent.id, session.id)
        assert app.post("/annotations", {"session": key, "starred": True}).status == 200
        waiting += [base, *(f"{base}/{part}" for part in SESSION_PAGES), f"/annotations/form?session={key}"]
    seen: set[str] = set()
    alike = Counter[tuple[str, ...]]()
    planted = subject.planted
    most_alike = MOST_ALIKE[planted.variant] if planted.agent == "claude-code" else MOST_ALIKE_OF_OTHERS
    while waiting:
        path = waiting.pop(0)
        kind = (route_of(path), *sorted(parse_qs(urlsplit(path).query, keep_blank_values=True)))
        if path in seen or path.startswith("/static/") or alike[kind] >= most_alike:
            continue
        seen.add(path)
        alike[kind] += 1
        for headers in ({}, {"X_Clew": "1"}):
            answer = app.get(path, **headers)
            assert answer.status != 500, path
            subject.see(f"web {route_of(path)}", answer.body + repr(answer.headers).encode())
            waiting += [unescape(link).partition("#")[0] for link in LINK.findall(answer.body.decode())]
    return {route for route, *_ in alike}


def route_of(path: str) -> str:
    """The route that leads to a page."""
    place = urlsplit(path).path
    for route in PAGE_VIEWS:
        pattern = re.sub(r"\{\w+:int\}", r"\\d+", route)
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", pattern), place):
            return route
    return place


def first_event(app: Shown, path: str) -> bytes:
    """What a stream tells first."""
    app.get("/")
    connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=10)
    connection.request("GET", path, headers={"Host": app.host, "Cookie": app._cookie or ""})
    answer = connection.getresponse()
    told = answer.fp.readline() + answer.fp.readline() + answer.fp.readline()
    connection.close()
    return told


@pytest.mark.slow
@pytest.mark.parametrize("level", ["metrics", "redacted"])
@pytest.mark.parametrize("subject", [(agent, "odd") for agent in AGENTS], indirect=True, ids="-".join)
def test_no_row_of_a_server_holds_a_canary(
    subject: Subject,
    server: Server,  # noqa: F811
    database: str,  # noqa: F811
    url: str,  # noqa: F811
    level: str,
) -> None:
    done = subject.run(f"push {url} --level {level}")
    assert done.exit_code == 0, done.stderr
    subject.see(f"push --level {level}", done.stdout_bytes + done.stderr_bytes)
    subject.see(f"push --level {level} -> rows", dumped(server, database).encode())
    for line in ("stats --by project", "stats --by tool --csv", "search the", "search the --json"):
        done = subject.run(f"{line} --engine {url}{masking(line.split(' ')[0], 'secrets')}")
        subject.see(f"{line} --engine postgresql://", done.stdout_bytes + done.stderr_bytes)
    assert not subject.leaks, subject.told()
