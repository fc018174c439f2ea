"""What the runs with faults share: cluster, processes, client, requests (`bench/router/chaos.py`, `bench/soak`)."""
