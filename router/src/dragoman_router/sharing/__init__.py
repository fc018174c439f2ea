"""Shares keys' usage with the other routers, through a ConfigMap."""
