"""Every table of the paper by name, each with its robust estimates."""
