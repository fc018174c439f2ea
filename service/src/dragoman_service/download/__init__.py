"""Models from stores into the cache: only what is missing, resumed, verified, once for all processes that share it."""
