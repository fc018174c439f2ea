"""Access to the Kubernetes API: client, list-watch with a cache, work queue, events, quantities and times."""
