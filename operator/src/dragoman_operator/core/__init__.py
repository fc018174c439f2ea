"""Decisions: pure functions of what was observed. No clock, no environment, no client."""
