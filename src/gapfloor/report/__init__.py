"""What a researcher takes away: tables, citable numbers, figures, the page and the gap card."""
