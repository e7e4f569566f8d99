"""A PostgreSQL server: many machines push their sessions, the server merges them, and everyone can query it."""
