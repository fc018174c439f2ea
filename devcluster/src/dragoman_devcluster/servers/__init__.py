"""The Kubernetes API servers that the local cluster can run."""
