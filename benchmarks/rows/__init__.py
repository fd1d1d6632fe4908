"""Rows of the speed table, one file for each kind: `rows(options)` gives them by name."""
