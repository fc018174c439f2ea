"""Sources of metrics: pods, Prometheus, and routers."""
