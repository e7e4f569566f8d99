"""The archive: the raw bytes of every source, kept before an agent deletes or rewrites them."""
