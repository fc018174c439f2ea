"""Where the autoscaler's figures come from: the pods themselves, a Prometheus, and the routers."""
