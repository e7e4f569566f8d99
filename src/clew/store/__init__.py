"""clew's own session store: append-only logs in the layouts of the Sage programs, safe among processes and crashes."""

from clew.agents.sage_agent.written_records import (
    Context,
    FileBackup,
    MessageBody,
    MessageRecord,
    Thinking,
    TodoItem,
    ToolCall,
    ToolResult,
    TrackedFile,
    Usage,
)
from clew.agents.sage_emacs.written_records import ToolRun
from clew.io.file_lock import CannotLock
from clew.store.conversation_tree import Branch
from clew.store.file_state import FileState
from clew.store.project import Project
from clew.store.session import MessageOptions, Session
from clew.store.store import Store
from clew.store.undo_plan import Comparison, FileDifference, FileStep, Refused, UndoResult
from clew.store.watch import Watch
from clew.store.writer import Draft, Receipt

__all__ = [
    "Branch",
    "CannotLock",
    "Comparison",
    "Context",
    "Draft",
    "FileBackup",
    "FileDifference",
    "FileState",
    "MessageBody",
    "MessageOptions",
    "MessageRecord",
    "Project",
    "Receipt",
    "Refused",
    "Session",
    "FileStep",
    "Store",
    "Thinking",
    "TodoItem",
    "ToolCall",
    "ToolResult",
    "ToolRun",
    "TrackedFile",
    "UndoResult",
    "Usage",
    "Watch",
]
