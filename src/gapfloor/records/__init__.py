"""Records: the store of cells, written atomically as Parquet and queried with DuckDB."""
