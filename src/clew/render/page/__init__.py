"""Sessions as HTML: escaped or sanitised parts, in a self-contained page."""
