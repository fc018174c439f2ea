"""Reconciling: events, the work queue, leadership, writes."""
