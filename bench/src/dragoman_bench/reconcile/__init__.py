"""`dragoman bench reconcile`: what the operator costs the API server, and itself, by the number of objects."""
