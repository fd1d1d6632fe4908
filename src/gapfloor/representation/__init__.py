"""representation."""
