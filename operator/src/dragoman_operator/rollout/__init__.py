"""Rolling updates: their strategy, progress and rollback."""
