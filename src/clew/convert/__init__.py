"""Agent to agent: a session written anew so that another agent goes on with it."""
