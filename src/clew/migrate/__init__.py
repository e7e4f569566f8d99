"""Rewriting native sessions in place: older Sage stores converted to the current format, and secrets masked."""
