"""What follows from the events of a session: facts, graph, token usage, prices, todos, problems.

Pure functions and small collectors. Nothing here knows an agent or reads its files.
"""
