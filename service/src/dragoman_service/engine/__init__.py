"""The seam to what generates text: a protocol of four methods, vLLM behind it, and a scripted stand-in."""
