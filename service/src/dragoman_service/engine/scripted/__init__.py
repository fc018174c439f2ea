"""An engine that answers from a table, for tests and the local cluster."""
