"""Rewriting native sessions in place: older Sage stores brought to the current form, and secrets masked."""
