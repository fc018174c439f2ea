"""The controllers: work queues over the Kubernetes API, each beside its decisions, which are pure."""
