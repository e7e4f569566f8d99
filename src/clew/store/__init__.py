"""clew's own session store: append-only logs in the layouts of the Sage programs, safe among processes and crashes."""

from clew.store.branches import Branch, Comparison
from clew.store.drafts import Draft, Receipt
from clew.store.lock import CannotLock
from clew.store.project import Project, ToolRun
from clew.store.routes import FileDifference
from clew.store.session import About, Session
from clew.store.snapshots import FileState
from clew.store.steps import Refused, Step, Undone
from clew.store.store import Store
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
    "Step",
    "Store",
    "Thinking",
    "TodoItem",
    "ToolCall",
    "ToolResult",
    "ToolRun",
    "TrackedFile",
    "Undone",
    "Usage",
    "Watch",
]
