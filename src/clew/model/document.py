"""The unified document: one session of any agent, whole."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from clew.model.base import Part
from clew.model.json import JSON, Extensions
from clew.model.message import Message
from clew.model.problem import Problem
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


class NativeFile(Part, kw_only=True):
    """One of the agent's own files, line by line."""

    path: Annotated[str, Meta(description="Name of the main file; of the others, relative to its folder.")]
    records: Annotated[
        list[JSON],
        Meta(
            description="Each line: a JSON object as it is, any other text as a string, bytes that are no UTF-8 as a "
            "list of base64 pieces."
        ),
    ]
    sha256: Annotated[str, Meta(description="Of the whole file, unpacked.")] | UnsetType = UNSET
    final_newline: Annotated[bool, Meta(description="False where the last line has no line feed.")] | UnsetType = UNSET


class Native(Part, kw_only=True):
    """The original: restoring the session is writing these files."""

    messages_sha256: (
        Annotated[str, Meta(description="Of the messages, each as compact JSON with sorted keys and a line feed.")]
        | UnsetType
    ) = UNSET
    files: list[NativeFile]


class Document(Part, kw_only=True):
    """Header, messages, and what else the source held."""

    schema_version: Annotated[str, Meta(description="Major and minor version.", pattern=r"^\d+\.\d+(\.\d+)?$")]
    export_timestamp: Annotated[str, Meta(description="When the document was written, ISO 8601.")]
    agent: Annotated[str, Meta(description="Id of the agent.", pattern="^[a-z0-9]+(-[a-z0-9]+)*$")]
    session: Session
    messages: list[Message]
    records: list[Record] | UnsetType = UNSET
    graph: Graph | UnsetType = UNSET
    problems: Annotated[list[Problem], Meta(description="What was wrong with the source.")] | UnsetType = UNSET
    native: Native | UnsetType = UNSET
    extensions: Extensions | UnsetType = UNSET
