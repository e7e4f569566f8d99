"""Where sessions are: the homes of this machine. Knows no format."""
