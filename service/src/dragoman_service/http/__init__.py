"""HTTP: requests, answers, probes and metrics."""
