"""What the cluster holds: a snapshot, and pure functions that read it."""
