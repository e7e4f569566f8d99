"""The skill of clew: a text that teaches agents to answer questions about earlier sessions with clew."""
