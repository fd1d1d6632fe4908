"""From what is played and how, to a verdict per script and one for the repository."""
