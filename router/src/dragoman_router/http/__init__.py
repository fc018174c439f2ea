"""HTTP: requests in, proxying to replicas, answers out."""
