"""Calibration: which actions are the same, measured by cloning states in the real engine."""
