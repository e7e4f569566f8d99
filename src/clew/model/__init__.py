"""The words of clew as types. This package imports nothing of ours."""

from clew.model.blocks import (
    Block,
    DocumentBlock,
    Image,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
)
from clew.model.document import Document, ForkBranch, ForkPoint, Graph, Native, NativeFile
from clew.model.message import Message, Metadata, ModelUse, SourceRef, ThinkingSettings
from clew.model.problem import Problem, Severity
from clew.model.record import Record
from clew.model.session import Session, Source, Subagent
from clew.model.snapshot import Snapshot, TrackedFile
from clew.model.todo import Todo
from clew.model.usage import TokenUsage
from clew.model.version import SCHEMA_VERSION

__all__ = [
    "SCHEMA_VERSION",
    "Block",
    "Document",
    "DocumentBlock",
    "ForkBranch",
    "ForkPoint",
    "Graph",
    "Image",
    "Message",
    "Metadata",
    "ModelUse",
    "Native",
    "NativeFile",
    "Problem",
    "Record",
    "Session",
    "Severity",
    "Snapshot",
    "Source",
    "SourceRef",
    "Subagent",
    "Text",
    "Thinking",
    "ThinkingSettings",
    "Todo",
    "TokenUsage",
    "ToolResult",
    "ToolUse",
    "TrackedFile",
    "Unknown",
]
