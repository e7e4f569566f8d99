"""What is masked in answers, and the sessions that were read for it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import NamedTuple

from clew.agents.source import FileStates, file_states
from clew.catalog.sessions import CatalogOnlySession
from clew.model.json import JSON
from clew.redact.masks import Marker
from clew.redact.native_files import mask_file
from clew.redact.redactor import MaskSettings, Redactor
from clew.stored_session import StoredSession

MAX_CACHED_BYTES = 8 << 20
"""Bytes of the files of sessions that stay known; the last one stays, however long it is."""


class OpenSession(NamedTuple):
    """A session, as it is and as it may be shown."""

    plain: StoredSession
    shown: StoredSession
    redactor: Redactor | None
    """Knows the secrets of the whole session; None if nothing is masked."""
    states: FileStates

    header: dict[str, JSON]
    """What holds for the session as a whole, masked."""

    @property
    def reference(self) -> str:
        """`agent:id`."""
        return f"{self.plain.agent.id}:{self.header['id']}"

    def value(self, value: JSON) -> JSON:
        """A value from the session, masked."""
        return value if self.redactor is None else self.redactor.learn_and_mask(value)

    def file(self, body: bytes, path: str) -> bytes:
        """The content of a file of the session, masked."""
        if self.redactor is None:
            return body
        return b"".join(mask_file(lambda: BytesIO(body), self.redactor, path))


class Masking:
    """Masks answers by one profile. `settings` None masks nothing."""

    def __init__(self, settings: MaskSettings | None) -> None:
        # Without tags: errors quote what the caller sent, so a tag would tell whether a guess of a password is right.
        self._settings = settings._replace(mark=Marker()) if settings is not None else None
        self._sessions: OrderedDict[tuple[str, str], OpenSession] = OrderedDict()

    def redactor(self, sessions: Iterable[StoredSession] = ()) -> Redactor | None:
        """A redactor that knows the secrets of some sessions; None if nothing is masked."""
        if self._settings is None:
            return None
        redactor = Redactor(self._settings)
        for session in sessions:
            session.teach(redactor)
        return redactor

    @property
    def is_on(self) -> bool:
        """False where answers show everything."""
        return self._settings is not None

    def text(self, text: str, calls: Sequence[JSON] = (), /) -> str:
        """Mask a text. `calls` are those of its session that read credential files, with their outputs."""
        redactor = self.redactor()
        if redactor is None or not text:
            return text
        redactor.learn(calls)
        return str(redactor.learn_and_mask(text))

    def value(self, value: JSON) -> JSON:
        """Mask a value that stands alone."""
        redactor = self.redactor()
        return value if redactor is None else redactor.learn_and_mask(value)

    def names(self, names: list[str]) -> list[str]:
        """Mask each name by itself."""
        redactor = self.redactor()
        return names if redactor is None else redactor.mask_each(names)

    def open(self, session: StoredSession) -> OpenSession:
        """The session, masked. One whose files have not changed is not read for secrets again."""
        key = session.agent.id, str(session.path)
        states = file_states(session.source)
        known = self._sessions.pop(key, None)
        if known is None or known.states != states or isinstance(session, CatalogOnlySession):
            redactor = self.redactor()
            shown = session if redactor is None else session.redacted(redactor)
            if shown.source.mask is not None:
                shown.source.mask.learn()
            # To decode the masked files for the header takes longer than to mask the header.
            header = session.session_object
            header = header if redactor is None else redactor.learn_and_mask(header)
            known = OpenSession(session, shown, redactor, states, header)
        self._sessions[key] = known
        self._forget()
        return known

    def _forget(self) -> None:
        """Forget the sessions that were used least recently, until the rest is small enough."""
        while (
            len(self._sessions) > 1 and sum(one.plain.source.size for one in self._sessions.values()) > MAX_CACHED_BYTES
        ):
            self._sessions.popitem(last=False)
