"""Rolling updates: strategy and rollback."""
