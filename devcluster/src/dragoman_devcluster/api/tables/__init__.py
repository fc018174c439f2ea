"""Objects as the tables that `kubectl get` prints."""
