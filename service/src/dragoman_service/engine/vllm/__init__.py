"""vLLM: everything that imports it, or knows how it works inside."""
