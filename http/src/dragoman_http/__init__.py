"""The HTTP server of pods and routers."""
