"""Leaner ways to read sources, for the catalog alone: what they tell equals what the unified document would.

A line that is not regular in every respect is refused, and its source is read the general way. Modules here load
nothing but the standard library: a few appended lines are taken in faster than a reader is loaded.
"""
