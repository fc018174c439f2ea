"""Deployments and replicas as they are now, and the connections to them."""
