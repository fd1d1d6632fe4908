"""Audits done by hand: entries with their evidence lines, and checking those lines in clones."""
