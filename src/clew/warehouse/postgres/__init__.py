"""Sessions of many machines on one PostgreSQL server: pushed by each, merged there, asked by all."""
