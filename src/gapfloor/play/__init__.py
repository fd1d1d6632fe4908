"""Playing cells: schedules in, episodes and cell records out."""
