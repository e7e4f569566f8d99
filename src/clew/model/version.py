"""The version of the unified document, apart from the version of the package."""

SCHEMA_VERSION = "1.1"
