"""Runs with faults: `chaos.py` has each fault once in turn, `soak.py` random ones for an hour."""
