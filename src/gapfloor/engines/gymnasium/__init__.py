"""Gymnasium environments as engines: the level is the seed given to `reset`."""
