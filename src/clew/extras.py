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
    message = missing_extra(extra)
    if message is not None:
        raise UsageError(f"this {message}")


def missing_extra(extra: str) -> str | None:
    """What an extra that is missing needs, with the command that installs it; None if it is installed."""
    missing = [module for module in MODULES[extra] if find_spec(module) is None]
    return f"needs {', '.join(missing)}: pip install '.[{extra}]' in a clone of clew" if missing else None
