"""A study: one file that names everything, a graph of idempotent tasks, and who runs them."""
