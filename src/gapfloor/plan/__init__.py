"""The analysis plan: what is fixed before the data are seen."""
