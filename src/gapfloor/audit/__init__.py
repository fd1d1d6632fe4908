"""Which action rule does a code base use at test time? A ledger of twelve, a scanner, a trace and a probe.

The scanner runs and imports nothing that it reads: sources are text, taken from a folder or from git.
"""
