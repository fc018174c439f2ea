"""A Kubernetes cluster on one machine: an API on loopback, and a node that runs pods as processes."""
