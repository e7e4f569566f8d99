"""Hooks: agents run `clew hook run` at the end of a session, and the session is archived at once."""
