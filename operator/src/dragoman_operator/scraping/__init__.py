"""Reads load and engine metrics from pods, Prometheus and routers, for autoscaling and tuning."""
