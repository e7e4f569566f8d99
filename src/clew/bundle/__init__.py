"""Evidence bundles: sessions in one file that somebody with neither their home nor clew's data can check."""
