"""Observing an evaluation while it runs: hooks in the user's own process, and what they saw."""
