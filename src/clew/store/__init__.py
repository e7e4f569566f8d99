"""clew's own session store: append-only logs in the layouts of the Sage programs, safe among processes and crashes."""

from clew.store.branches import Branch, Comparison
from clew.store.drafts import Draft, Receipt
from clew.store.file_state import FileState
from clew.store.lock import CannotLock
from clew.store.project import Project, ToolRun
from clew.store.session import About, Session
from clew.store.store import Store
from clew.store.undo_plan import FileDifference, FileStep, Refused, UndoResult
from clew.store.watch import Watch
from clew.store.wire import (
    Context,
    FileBackup,
    MessageRecord,
    Said,
    Thinking,
    TodoItem,
    ToolCall,
    ToolResult,
    TrackedFile,
    Usage,
)

__all__ = [
    "About",
    "Branch",
    "CannotLock",
    "Comparison",
    "Context",
    "Draft",
    "FileBackup",
    "FileDifference",
    "FileState",
    "MessageRecord",
    "Project",
    "Receipt",
    "Refused",
    "Said",
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
