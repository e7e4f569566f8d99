"""The exceptions of clew: only what stops the work. Malformed input is a Problem, never an exception.

ClewError
  UsageError             exit 2   the request cannot be carried out
    UnknownReference     exit 1   no session matches this reference
    AmbiguousReference   exit 2   several sessions match
    UnsafeName           exit 4   a name in a record cannot be that of a file
  SourceUnreadable       exit 3   a file or folder cannot be opened
    LimitExceeded        exit 3   a bomb, or larger than a named limit
  InvalidDocument        exit 4   not a unified document, or of another major version
  PathRefused            exit 4   a path in a record leads outside of its folder
  Busy                   exit 5   another process holds what we need
  TargetRefused          exit 5   a server or a store refuses the data: full, newer, forbidden
  WouldLose              exit 6   continuing would lose data
  RemoteFailed           exit 7   another machine did not answer
  WorkerDied             exit 1   a worker process was killed before its work was done
"""

from __future__ import annotations


class ClewError(Exception):
    """Anything clew raises on purpose; `exit_code` is what the command line returns."""

    exit_code = 1


class UsageError(ClewError):
    """The request is not valid."""

    exit_code = 2


class UnknownReference(UsageError):
    """No session matches the reference."""

    exit_code = 1


class AmbiguousReference(UsageError):
    """More than one session matches the reference."""

    exit_code = 2


class UnsafeName(UsageError):
    """A name from a record cannot be that of a file, or leads elsewhere."""

    exit_code = 4


class SourceUnreadable(ClewError):
    """A source cannot be opened or read."""

    exit_code = 3
    problem_code = "unreadable"
    """Its code where it is reported as a Problem."""


class DatabaseLocked(SourceUnreadable):
    """Another program is writing to the database of a source, and did not finish within the time that is waited."""


class DatabaseDamaged(SourceUnreadable):
    """The file of a database is damaged, or is no database."""

    problem_code = "damaged-database"


class DatabaseUnknown(SourceUnreadable):
    """A database lacks tables or columns that this version reads."""

    problem_code = "unknown-database"


class LimitExceeded(SourceUnreadable):
    """A source is larger than a limit allows, or unpacks to something that is."""


class InvalidDocument(ClewError):
    """The text is not a unified document that this version can read."""

    exit_code = 4


class PathRefused(ClewError):
    """A path from a record leads outside of its folder, or to something that is not a file."""

    exit_code = 4


class Busy(ClewError):
    """Another process holds a lock we need."""

    exit_code = 5


class TargetRefused(ClewError):
    """A server or a store refuses the data."""

    exit_code = 5


class WouldLose(ClewError):
    """The work would lose data, and that was not allowed."""

    exit_code = 6


class RemoteFailed(ClewError):
    """Another machine did not answer, or not as expected."""

    exit_code = 7


class WorkerDied(ClewError):
    """A worker process was killed, as by the system where memory is short; a part of the work is not done."""
