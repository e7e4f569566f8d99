"""Sessions as self-contained HTML pages, written as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from clew.errors import InvalidDocument
from clew.io.compress import open_source, packer
from clew.model.json import JSON
from clew.render.branching import Forks
from clew.render.detail import Detail
from clew.render.page.fragments import Nested
from clew.render.page.frame import CARRIED
from clew.render.page.session import Contents, page

BATCH_CHARS = 1 << 17
"""Characters that are gathered before they are written."""
_SPOOL = 1 << 20
_LINE = 57 * 1024
"""Bytes of the document that become base64 at once: a multiple of three."""

WriteDocument = Callable[[IO[bytes]], object]
"""Writes the unified document of a session."""


def write_html(
    session: dict[str, JSON],
    messages: Iterable[dict[str, JSON]],
    out: IO[bytes],
    *,
    detail: Detail = "full",
    agent: str | None = None,
    forks: Forks | None = None,
    links: Mapping[str, str] | None = None,
    nested: Nested | None = None,
    index: str | None = None,
    document: WriteDocument | None = None,
    masked: str = "",
    remark: Callable[[], str] = str,
) -> Contents:
    """Write the page of a session; with `document`, the page carries the unified document that it writes."""
    table = Contents(bool(forks))
    pieces = page(
        session,
        messages,
        detail=detail,
        agent=agent,
        forks=forks,
        links=links,
        nested=nested,
        index=index,
        carried=_carried(document) if document is not None else (),
        masked=masked,
        remark=remark,
        table=table,
    )
    write_pieces(pieces, out)
    return table


def write_pieces(pieces: Iterable[str], out: IO[bytes]) -> None:
    """Write pieces of a page in UTF-8, many at once."""
    waiting: list[str] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size > BATCH_CHARS:
            out.write("".join(waiting).encode())
            waiting.clear()
            size = 0
    out.write("".join(waiting).encode())


def _carried(document: WriteDocument) -> Iterator[str]:
    """The unified document as zstd in base64: nothing in it can end the element it stands in, nor be run."""
    import base64
    from tempfile import SpooledTemporaryFile

    with SpooledTemporaryFile(_SPOOL) as spool:
        packed = packer("zstd")(spool)
        document(packed)
        packed.close()
        spool.seek(0)
        yield CARRIED
        for piece in iter(lambda: spool.read(_LINE), b""):
            yield base64.b64encode(piece).decode()
        yield "</script>\n"


def is_page(head: bytes) -> bool:
    """True for a file that begins as an HTML page does."""
    return head.lstrip()[:9].lower() == b"<!doctype"


@contextmanager
def carried_document(stream: BinaryIO, name: str) -> Iterator[BinaryIO]:
    """The unified document that a page carries, opened for reading."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        packed = Path(folder) / "document.zst"
        with packed.open("wb") as out:
            if not _unpack(stream, out):
                raise InvalidDocument(
                    f"{name}: the page carries no document; `clew export --carry` writes one that does"
                )
        with open_source(packed) as document:
            yield document


def _unpack(stream: BinaryIO, out: IO[bytes]) -> bool:
    """Copy the content of the document's element; False if there is no such element."""
    begin, before = CARRIED.encode(), b""
    for piece in iter(lambda: stream.read(_SPOOL), b""):
        at = (before + piece).find(begin)
        if at >= 0:
            _decode((before + piece)[at + len(begin) :], stream, out)
            return True
        before = piece[-len(begin) :]
    return False


def _decode(text: bytes, stream: BinaryIO, out: IO[bytes]) -> None:
    """Base64 up to the end of the element; its pieces are whole but for the last."""
    import base64

    try:
        while b"<" not in text and (more := stream.read(_SPOOL)):
            whole = len(text) - len(text) % 4
            out.write(base64.b64decode(text[:whole], validate=True))
            text = text[whole:] + more
        out.write(base64.b64decode(text.partition(b"<")[0], validate=True))
    except ValueError as error:
        raise InvalidDocument(f"the document that the page carries is damaged: {error}") from error
