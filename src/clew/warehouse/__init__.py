"""The tables of the catalog elsewhere: as Arrow tables, in a Parquet lake, on a PostgreSQL server and on Spark."""
