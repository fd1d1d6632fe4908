"""Records: the store of cells, written atomically as Parquet."""
