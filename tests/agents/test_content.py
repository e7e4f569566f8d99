"""Content in the spellings that agents share."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from clew.agents.content import content_blocks, split_data_url
from clew.agents.decoding import token_usage
from clew.model.blocks import Block, Text, Unknown
from clew.model.json import JSON


@pytest.mark.parametrize(
    ("content", "blocks"),
    [
        ("x", [Text(text="x")]),
        ("", []),
        (None, []),
        (UNSET, []),
        ([{"type": "text", "text": "x"}, 7], [Text(text="x"), Unknown(value=7)]),
        ({"type": "text", "text": "x"}, [Unknown(value={"type": "text", "text": "x"})]),
        (7, [Unknown(value=7)]),
    ],
)
def test_content_of_another_shape_is_kept(content: JSON, blocks: list[Block]) -> None:
    assert content_blocks(content) == blocks


def test_a_data_url_without_a_type_has_none() -> None:
    assert split_data_url("data:;base64,AAAA") == (UNSET, "base64", "AAAA")
    assert split_data_url("data:image/png;base64,AAAA") == ("image/png", "base64", "AAAA")


def test_negative_counts_are_unknown() -> None:
    usage = token_usage(input=10, cache_read=-5, cache_write=2, is_cache_in_input=True)
    assert (usage.input_tokens, usage.cache_read_tokens, usage.cache_creation_tokens) == (8, UNSET, 2)
