"""`dragoman bench replay`: a bursty load on one pod, measured and simulated."""
