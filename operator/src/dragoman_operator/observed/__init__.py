"""A snapshot of the cluster, and pure functions of it."""
