"""An hour of load and random faults; `run.py` starts it."""
