"""HTTP: requests in, answers out, and what the process says about itself."""
