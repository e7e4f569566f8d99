"""Bringing older stores of the two Sage programs up to date: first a plan, which writes nothing, then its steps."""
