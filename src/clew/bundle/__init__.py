"""Evidence bundles: sessions in one file that can be checked without their home and without clew's data."""
