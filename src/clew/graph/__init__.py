"""The tree of a conversation: parents, forks, the active path. Pure, iterative, and small in memory."""
