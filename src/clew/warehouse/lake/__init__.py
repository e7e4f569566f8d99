"""The tables as Parquet objects, by day, in a folder or an object store, which any number of machines write to."""
