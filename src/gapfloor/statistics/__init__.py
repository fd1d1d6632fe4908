"""Statistics of floors, gaps, rules and agents: arrays in, frozen results out."""
