"""A lake: the tables as Parquet objects, by month, in a folder or an object store that many machines write to."""
