"""Sessions as HTML: the parts that every face shows, escaped or cleaned, in a frame that needs nothing but itself."""
