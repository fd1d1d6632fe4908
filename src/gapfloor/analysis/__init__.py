"""Records and a plan in, results out."""
