"""The unified document: one session of any agent, whole."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from clew.model.base import Part
from clew.model.json import Extensions
from clew.model.message import Message
from clew.model.record import Record
from clew.model.session import Session


class ForkBranch(Part, kw_only=True):
    """The first message of one branch."""

    uuid: str
    index: int


class ForkPoint(Part, kw_only=True):
    """A message with more than one continuation."""

    uuid: str
    index: int
    branches: list[ForkBranch]


class Graph(Part, kw_only=True):
    """The shape of the conversation."""

    is_linear: bool
    fork_points: list[ForkPoint]
    active_path: Annotated[list[str], Meta(description="uuids from the root to the current leaf.")]


class Document(Part, kw_only=True):
    """Header, messages, and what else the source held."""

    schema_version: Annotated[str, Meta(description="Major and minor version.", pattern=r"^\d+\.\d+(\.\d+)?$")]
    export_timestamp: Annotated[str, Meta(description="When the document was written, ISO 8601.")]
    agent: Annotated[str, Meta(description="Id of the agent.", pattern="^[a-z0-9]+(-[a-z0-9]+)*$")]
    session: Session
    messages: list[Message]
    records: list[Record] | UnsetType = UNSET
    graph: Graph | UnsetType = UNSET
    extensions: Extensions | UnsetType = UNSET
