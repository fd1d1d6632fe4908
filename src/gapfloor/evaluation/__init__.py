"""Evaluation: cells, the player, observers and what `floor` and `evaluate` do."""
