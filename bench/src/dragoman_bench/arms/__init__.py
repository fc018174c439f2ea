"""The servers and drivers that are compared; each runs as a process of its own."""
