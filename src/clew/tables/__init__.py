"""The catalog's tables for other engines: rows of one source as Arrow, what may leave of them, and how copies merge."""
