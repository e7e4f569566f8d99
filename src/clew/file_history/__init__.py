"""The time machine: which message did what to which file, and what each file held then, as far as records prove it."""
