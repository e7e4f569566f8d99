"""Spark as a runner of `tables.ingest` over archives, and as an engine for statistics over a lake."""
