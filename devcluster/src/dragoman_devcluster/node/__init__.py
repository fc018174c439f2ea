"""The node: pods as processes of this machine."""
