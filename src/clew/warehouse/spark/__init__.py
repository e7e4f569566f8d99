"""Spark: a job that writes archives to a lake, and an engine that reads a lake."""
