"""Figures, each described once and rendered for print and for the page."""
