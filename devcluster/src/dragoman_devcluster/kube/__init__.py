"""The Kubernetes API as the controllers and the node see it: requests, and a mirror of its objects."""
