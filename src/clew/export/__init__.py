"""Sessions written out: one module per format, each a stream."""
