"""Masking of a command's output: its options, and the report on stderr.

Text for people is masked by default; output for programs is masked only on request.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from clew.cli.output import print_message

if TYPE_CHECKING:
    import click

    from clew.errors import ClewError
    from clew.model.json import JSON
    from clew.redact.redactor import MaskSettings, Redactor
    from clew.stored_session import StoredSession

F = TypeVar("F", bound=Callable[..., Any])

NAMES = ("none", "secrets", "pii", "paths", "all")
"""The profiles, listed here so that the help does not load the rules."""
_FOR_PEOPLE, _FOR_PROGRAMS = "secrets", "none"
"""The default profiles of text that people read, and of output for programs."""
STANDARD = Path("-")
"""Standard input, or output."""
_CHOICE = "clew.redact"
_MASKED = "clew.masked"
_WITHOUT_KEY = "clew.without-key"
_printed_once: dict[str, object] = {}
"""What was said once by commands that run before click is loaded."""
_SESSION = "clew.session"
_CHOICES = "secrets, pii (with secrets), paths (with secrets) or all. Default: secrets in text, none in JSON"


def redacting(function: F) -> F:
    """--redact, --redact-plain and --rules; no command needs to take them."""
    return _with_options(function, f"What to mask: {_CHOICES} and native files.")


def redacting_output(function: F) -> F:
    """The same for commands that write files as they are: only what they print is masked."""
    return _with_options(function, f"What to mask in the output, not in written files: {_CHOICES}.")


def redacting_on_demand(function: F) -> F:
    """The same for commands that mask nothing unless they are asked to."""
    return _with_options(
        function, "What to mask: secrets, pii (with secrets), paths (with secrets) or all. Default: none."
    )


def redacting_answers(function: F) -> F:
    """The same for a server whose answers are shared with a model."""
    return _with_options(
        function, "What to mask: none, secrets, pii (with secrets), paths (with secrets) or all. Default: secrets."
    )


def _with_options(function: F, help_text: str) -> F:
    import click

    options = (
        click.option(
            "--redact",
            type=click.Choice(NAMES),
            expose_value=False,
            callback=_note,
            help=help_text,
        ),
        click.option(
            "--redact-plain",
            is_flag=True,
            expose_value=False,
            callback=_note,
            help="Mask with [REDACTED], without the name of the rule and the tag.",
        ),
        click.option(
            "--rules",
            type=click.Path(path_type=Path, exists=True, dir_okay=False),
            metavar="FILE",
            expose_value=False,
            callback=_note,
            help="Your own rules, instead of redaction.toml in your configuration folder.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def _note(context: click.Context, parameter: click.Parameter, value: object) -> None:
    if value:
        context.meta.setdefault(_CHOICE, {})[parameter.name] = value


def _as_it_is(text: str, _path: str | None = None) -> str:
    return text


class Redaction:
    """The masking of one run."""

    def __init__(
        self, redact: str | None = None, *, for_programs: bool = False, plain: bool = False, rules: Path | None = None
    ) -> None:
        self.profile = redact or (_FOR_PROGRAMS if for_programs else _FOR_PEOPLE)
        self.was_asked = redact is not None
        self.plain, self.rules_file = plain, rules
        self.masked: Counter[str] = Counter()
        self.can_be_asked = True
        """The command takes --redact."""
        self._session: StoredSession | None = None
        self._sessions_redactor: Redactor | None = None
        self._learned: dict[str, Redactor] = {}
        """By profile, one that has seen the session that the run is about."""

    @property
    def is_on(self) -> bool:
        """False where everything goes out as it is."""
        return self.profile != "none"

    @cached_property
    def settings(self) -> MaskSettings:
        """What is masked, and how; the rules are loaded with the first text."""
        from clew.redact.settings import load_settings

        return load_settings(self.profile, plain=self.plain, rules=self.rules_file, without_key=_warn_without_key)

    @property
    def version(self) -> str:
        """That of the rules."""
        return self.redactor(counted=False).version

    def redactor(self, counted: bool = True) -> Redactor:
        """One for the parts of one session; all that are counted count together.

        Where the run is about one session, it knows what is secret in it.
        """
        from clew.redact.redactor import Redactor

        if self._session is not None:
            return self.learned(self._session)
        return self._sessions_redactor or Redactor(self.settings, self.masked if counted else None)

    def learn_sessions(self, sessions: Iterable[StoredSession]) -> None:
        """Learn the secrets of some sessions; all that is masked later is masked with this knowledge."""
        from clew.redact.redactor import Redactor

        self._sessions_redactor = Redactor(self.settings, self.masked)
        for session in sessions:
            session.teach(self._sessions_redactor)

    def prepare(self) -> None:
        """Load the rules now: processes that are forked later have them then, and no work is done if they are wrong."""
        if self.is_on:
            self.redactor(counted=False).learn_and_mask("password")

    def session(self, session: StoredSession) -> StoredSession:
        """The session as it may be seen."""
        return session.redacted(self.redactor()) if self.is_on else session

    def learned(self, session: StoredSession) -> Redactor:
        """One that has seen a whole session."""
        from clew.redact.redactor import Redactor

        is_own = session is self._session
        if is_own and self.profile in self._learned:
            return self._learned[self.profile]
        redactor = Redactor(self.settings, self.masked)
        session.teach(redactor)
        if is_own:
            self._learned[self.profile] = redactor
        return redactor

    def records(self, session: StoredSession) -> Callable[[bytes], bytes]:
        """Masks native records of a session."""
        if not self.is_on:
            return lambda raw: raw
        from clew.redact.native_files import mask

        redactor = self.learned(session)
        return lambda raw: mask(raw, redactor)

    def texts(self, session: StoredSession) -> Callable[[str, str | None], str]:
        """Masks texts that come from a session, each given with the path of its file."""
        if not self.is_on:
            return _as_it_is
        return self.learned(session).text

    def files(self, session: StoredSession) -> Callable[[Callable[[], BinaryIO]], Iterable[bytes]] | None:
        """Masks native files of a session; None where they go out as they are."""
        if not self.is_on:
            return None
        from clew.redact.native_files import mask_file

        redactor = self.learned(session)
        return lambda opened: mask_file(opened, redactor)

    def pieces(self, path: Path) -> Iterable[bytes]:
        """A file that belongs to no session; `-` is standard input."""
        from clew.io.compress import open_source

        is_file = path != STANDARD
        opened: Callable[[], BinaryIO] = partial(open_source, path) if is_file else _standard_input()
        if not self.is_on:
            with opened() as stream:
                yield from stream
            return
        from clew.redact.native_files import mask_text_file

        yield from mask_text_file(opened, self.redactor(), str(path) if is_file else None)

    def file(self, session: StoredSession, body: bytes, path: str) -> bytes:
        """The content of a file of a session, masked."""
        from clew.redact.native_files import mask_file

        return b"".join(mask_file(lambda: BytesIO(body), self.learned(session), path))

    def file_name(self, session: StoredSession) -> str:
        """What the file of a session is called: its id may hold a secret that rules find."""
        name = f"{session.agent.id}-{session.id}"
        return str(self.redactor(counted=False).learn_and_mask(name)) if self.is_on else name

    def values(self, values: Iterable[dict[str, JSON]]) -> Iterable[dict[str, JSON]]:
        """The records of a session, one after the other; what is found in one is masked in all."""
        if not self.is_on:
            return values
        kept, redactor = list(values), self.redactor()
        redactor.learn(kept)
        return map(redactor.value, kept)

    def value(self, value: JSON) -> JSON:
        """A value that stands alone."""
        return self.redactor().learn_and_mask(value) if self.is_on else value

    def lines(self, lines: list[str], path: str) -> list[str]:
        """The lines of a file."""
        return self.redactor().mask_lines(lines, path) if self.is_on else lines

    def names(self, names: list[str]) -> list[str]:
        """Names and cells of tables, each masked by itself."""
        return self.redactor().mask_each(names) if self.is_on else names

    def text(self, text: str, calls: Sequence[JSON] = (), /) -> str:
        """Mask a single text. `calls` are those of its session that read credential files, with their outputs."""
        if not self.is_on:
            return text
        redactor = self.redactor()
        redactor.learn(calls)
        return str(redactor.learn_and_mask(text))

    @contextmanager
    def counted_separately(self) -> Iterator[None]:
        """Count what is masked in this block separately, then add it to the total: a document states its own count."""
        whole, self.masked = self.masked, Counter()
        try:
            yield
        finally:
            whole.update(self.masked)
            self.masked = whole

    def summary(self) -> str:
        """How many values were masked, by rule; never which."""
        from clew.redact.findings import masked_summary

        return masked_summary(self.masked)

    def report(self) -> None:
        """Say what was masked."""
        if self.masked:
            hint = "; --redact none shows it" if self.can_be_asked and not self.was_asked else ""
            print_message(f"clew: masked {self.summary()}{hint}", mask=False)


def _warn_without_key(error: ClewError) -> None:
    """Say once in a run that markers have neither rule nor tag, and why."""
    context = _context()
    printed = _printed_once if context is None else context.meta
    if not printed.get(_WITHOUT_KEY):
        printed[_WITHOUT_KEY] = True
        print_message(
            f"clew: {error}; without a key, values are masked as [REDACTED], without the name of the rule and the tag"
        )


def _standard_input() -> Callable[[], BinaryIO]:
    """Opens what comes in, again and again: masking reads everything twice."""
    return partial(BytesIO, sys.stdin.buffer.read())


def _context() -> click.Context | None:
    """The run of a command; None for those that run before click is loaded."""
    return sys.modules["click"].get_current_context(silent=True) if "click" in sys.modules else None


def redaction(context: click.Context, *, for_programs: bool) -> Redaction:
    """The masking that the options select; by default none for programs, and of secrets for people.

    All that is masked in one run is counted together, and reported once.
    """
    choice: dict[str, Any] = context.meta.get(_CHOICE, {})
    plain, rules = "redact_plain" in choice, choice.get("rules")
    found = Redaction(choice.get("redact"), for_programs=for_programs, plain=plain, rules=rules)
    found.can_be_asked = any(parameter.name == "redact" for parameter in context.command.params)
    if _MASKED in context.meta:
        found.masked = context.meta[_MASKED]
    else:
        context.meta[_MASKED] = found.masked
        context.find_root().call_on_close(found.report)
    found._session, found._learned = context.meta.get(_SESSION, (None, {}))
    return found


def mask_by_session(context: click.Context, session: StoredSession) -> None:
    """From now on, mask all that this run prints with what is secret in a session: names, paths, messages, errors."""
    context.meta[_SESSION] = session, {}


def masked_for_people(text: str, *, counted: bool = True) -> str:
    """A text for the terminal, masked with the profile of this run; by default only secrets are masked."""
    context = _context()
    masking = redaction(context, for_programs=False) if context is not None else Redaction()
    return str(masking.redactor(counted).learn_and_mask(text)) if masking.is_on else text
