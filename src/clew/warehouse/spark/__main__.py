"""Prints where the job for spark-submit lies."""

from pathlib import Path

print(Path(__file__).with_name("job.py"))
