"""Where deployments and replicas come from."""
