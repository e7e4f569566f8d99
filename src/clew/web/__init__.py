"""The local web app: an interface over the library and the catalog, for one user of this machine."""
