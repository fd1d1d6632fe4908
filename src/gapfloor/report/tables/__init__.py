"""Every table of a report: what it is made for, its rows, its columns and its words."""
