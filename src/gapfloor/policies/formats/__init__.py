"""Policies that other libraries saved: one prefix for each format, e.g. `sb3:model.zip`."""
