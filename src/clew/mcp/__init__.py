"""A Model Context Protocol server over the catalog: read-only tools and resources for agents."""
