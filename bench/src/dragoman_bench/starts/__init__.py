"""How long a pod takes to start: by itself, and with what a ready one has compiled."""
