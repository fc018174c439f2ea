"""The number of replicas: from metrics to a decision and its status."""
