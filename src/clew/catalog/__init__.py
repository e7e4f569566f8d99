"""The rebuildable index over all sessions: rows in SQLite, text in tantivy."""
