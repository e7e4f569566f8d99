"""The local web app: a face over the library and the catalog, for this machine's own user alone."""
