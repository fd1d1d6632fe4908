"""From stepped environments to evaluation paths, their rule and levels, and the verdict."""
