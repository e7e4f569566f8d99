"""The content of messages, from the spellings that providers of models share.

What has an unknown kind or another shape than expected stays as it is, in an `Unknown` block.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec import UNSET, UnsetType, to_builtins

from clew.io.codec import NOT_JSON, loads
from clew.model.blocks import Block, DocumentBlock, Image, Text, Unknown
from clew.model.json import JSON

_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*?;base64,")


def text_or_none(value: JSON) -> str | None:
    """The value if it is a str, else None."""
    return value if type(value) is str else None


def text_or_unset(value: JSON) -> str | UnsetType:
    """The value if it is a str, else UNSET."""
    return value if type(value) is str else UNSET


def parse_arguments(arguments: JSON) -> JSON:
    """The arguments of a call that may be JSON in a text; a text that is no JSON stays as it is."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return loads(arguments) if arguments else {}
    except (*NOT_JSON, UnicodeEncodeError):
        return arguments


# Blocks


def text_blocks(text: JSON) -> list[Block]:
    """The block of a text; none of an empty one, and of anything else."""
    return [Text(text=text)] if isinstance(text, str) and text else []


def text_block(item: JSON) -> Block:
    """The block of an object `{"type": "text", "text": ...}`."""
    if type(item) is dict and item.get("type") == "text" and type(item.get("text")) is str:
        return Text(text=item["text"])
    return Unknown(value=item)


def content_blocks(content: JSON, decode_block: Callable[[JSON], Block] = text_block) -> list[Block]:
    """The blocks of content that is a text or a list."""
    if type(content) is list:
        return [decode_block(item) for item in content]
    is_text = content is None or content is UNSET or type(content) is str
    return text_blocks(content) if is_text else [Unknown(value=content)]


def attachment_block(
    content: str | UnsetType, media_type: str | None | UnsetType, encoding: str, title: str | None = None
) -> Image | DocumentBlock:
    """A picture, or a document of any other type."""
    if isinstance(media_type, str) and media_type.startswith("image/"):
        return Image(media_type=media_type, encoding=encoding, image=content)
    media_type, name = media_type if media_type is not None else UNSET, title if title is not None else UNSET
    return DocumentBlock(media_type=media_type, encoding=encoding, document=content, title=name)


def split_data_url(url: str) -> tuple[str | UnsetType, str, str]:
    """The media type, the encoding and the content of a URL that may hold the content itself."""
    found = _DATA_URL.match(url)
    return (found[1] or UNSET, "base64", url[found.end() :]) if found else (UNSET, "url", url)


# The output of tools


def joined_output(blocks: Sequence[Block]) -> JSON:
    """The texts of blocks, or the blocks as JSON where there are others among them."""
    texts = [block.text for block in blocks if isinstance(block, Text)]
    return "\n".join(texts) if len(texts) == len(blocks) else to_builtins(blocks)


def output_with_attachments(text: str | UnsetType, attachments: Sequence[Block]) -> JSON:
    """A text alone, or with attachments a list of blocks as JSON."""
    return to_builtins([*text_blocks(text), *attachments]) if attachments else text
