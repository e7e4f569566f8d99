"""Sessions in the formats of other tools: evaluation, tracing, datasets, provenance."""
