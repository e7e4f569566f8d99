"""Optional libraries, by the extra of the package that installs them."""

from __future__ import annotations

from importlib.util import find_spec

from clew.errors import UsageError

MODULES = {
    "lake": ("pyarrow", "fsspec", "duckdb"),
    "mcp": ("mcp", "mcp_types"),
    "s3": ("s3fs",),
    "postgres": ("pyarrow", "psycopg"),
    "spark": ("pyspark", "pyarrow", "pandas"),
}


def require_extra(extra: str) -> None:
    """Raise UsageError, with the command that installs it, if an extra is missing."""
    if missing := missing_modules(extra):
        raise UsageError(f"this needs {', '.join(missing)}: {install_command(extra)}")


def missing_modules(extra: str) -> list[str]:
    """The modules of an extra that are not installed."""
    return [module for module in MODULES[extra] if find_spec(module) is None]


def install_command(extra: str) -> str:
    """The command that installs an extra, for messages."""
    return f"pip install '.[{extra}]' in a clone of clew"
