"""Autoscaling: from metrics to the number of replicas and its status."""
