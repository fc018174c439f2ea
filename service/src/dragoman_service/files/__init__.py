"""Files as texts to translate, and the way back. Pure: bytes in, bytes out; no HTTP, no event loop."""
