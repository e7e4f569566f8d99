"""Output on streams that cannot encode all characters: clew's own symbols become ASCII, others are escaped."""

from __future__ import annotations

import codecs
import io
import os

ASCII_SYMBOLS = "clew-ascii-symbols"
"""Name of the error handler for streams that cannot encode a character."""
_ASCII = str.maketrans("…·─═│├▸◂✗█▉▊▋▌▍▎▏≥«»–—★", "~.-=||><x#####...>[]--*")


def _encode_symbols(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace clew's own symbols by ASCII ones of the same width, and escape other characters."""
    assert isinstance(error, UnicodeEncodeError)
    char = error.object[error.start]
    if (symbol := char.translate(_ASCII)) != char:
        return symbol, error.start + 1
    escaped, _ = codecs.backslashreplace_errors(
        UnicodeEncodeError(error.encoding, error.object, error.start, error.start + 1, error.reason)
    )
    return escaped, error.start + 1


codecs.register_error(ASCII_SYMBOLS, _encode_symbols)


ASCII_CODEC = "clew-ascii"
"""Name of an encoding that is ASCII with clew's own symbols replaced. click writes UTF-8 to streams that say ASCII."""


class _AsciiEncoder(codecs.IncrementalEncoder):
    def encode(self, text: str, final: bool = False) -> bytes:
        return _encode_ascii(text)[0]


def _encode_ascii(text: str, _errors: str = "strict") -> tuple[bytes, int]:
    return text.encode("ascii", ASCII_SYMBOLS), len(text)


def _find_codec(name: str) -> codecs.CodecInfo | None:
    if name.replace("_", "-") != ASCII_CODEC:
        return None
    known = codecs.lookup("ascii")
    return codecs.CodecInfo(
        _encode_ascii,
        known.decode,
        incrementalencoder=_AsciiEncoder,
        incrementaldecoder=known.incrementaldecoder,
        name=ASCII_CODEC,
    )


codecs.register(_find_codec)


def use_ascii_symbols(stream: io.TextIOWrapper) -> None:
    """Have a stream replace what it cannot encode. A terminal whose locale is C or POSIX gets ASCII alone.

    Python itself would write UTF-8 to such a terminal.
    """
    stream.reconfigure(errors=ASCII_SYMBOLS)
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "")
    if locale in ("C", "POSIX") and stream.isatty():
        stream.reconfigure(encoding=ASCII_CODEC)
