"""The public functions, one file each: a campaign of play, then an analysis of what it stored."""
