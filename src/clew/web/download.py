"""Files that a browser saves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from tempfile import TemporaryFile
from typing import IO
from urllib.parse import quote

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from clew.io.paths import file_name
from clew.render.text_safety import one_line

CHUNK_BYTES = 1 << 18
NOT_PLAIN = re.compile(r"[^A-Za-z0-9 ._()-]")
"""Characters that are replaced in the name for browsers that do not read `filename*`."""


class Download(StreamingResponse):
    """A file that is written completely before its first byte is sent, so that an error never cuts it short.

    Until then it is in a temporary file without a name. `name` is called when it was written: masking it before would
    count what the file masks.
    """

    def __init__(
        self, write: Callable[[IO[bytes]], object], name: Callable[[], str], suffix: str, media_type: str
    ) -> None:
        self._file = TemporaryFile()  # noqa: SIM115 - closed when it was sent
        try:
            write(self._file)
            disposition = content_disposition(name(), suffix)
        except BaseException:
            self._file.close()
            raise
        headers = {"Content-Length": str(self._file.tell()), "Content-Disposition": disposition}
        self._file.seek(0)
        super().__init__(self._chunks(), media_type=media_type, headers=headers)

    def _chunks(self) -> Iterator[bytes]:
        return iter(lambda: self._file.read(CHUNK_BYTES), b"")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._file.close()


def content_disposition(name: str, suffix: str) -> str:
    """The header that names a file. The name is untrusted text; what could lead to another folder is replaced."""
    safe = (file_name(one_line(name)).strip(". ") or "session") + suffix
    return f"attachment; filename=\"{NOT_PLAIN.sub('-', safe)}\"; filename*=UTF-8''{quote(safe, safe='')}"
