"""The web page: files that pods and routers serve, and the endpoints that answer them."""
