"""Token counts, in one convention for every agent."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from clew.model.base import Part


class TokenUsage(Part, kw_only=True):
    """Counts of one API call. Absent is unknown, never zero."""

    input_tokens: Annotated[int, Meta(description="Input that was not read from a cache.")] | UnsetType = UNSET
    output_tokens: Annotated[int, Meta(description="Output, reasoning included.")] | UnsetType = UNSET
    cache_creation_tokens: Annotated[int, Meta(description="Input written to a cache.")] | UnsetType = UNSET
    cache_read_tokens: Annotated[int, Meta(description="Input read from a cache.")] | UnsetType = UNSET
    cache_creation_5m_tokens: (
        Annotated[int, Meta(description="Of cache_creation_tokens, kept 5 minutes.")] | UnsetType
    ) = UNSET
    cache_creation_1h_tokens: Annotated[int, Meta(description="Of cache_creation_tokens, kept 1 hour.")] | UnsetType = (
        UNSET
    )
    reasoning_tokens: Annotated[int, Meta(description="Of output_tokens, spent on reasoning.")] | UnsetType = UNSET
    service_tier: str | None | UnsetType = UNSET
