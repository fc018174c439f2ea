"""Engines: the protocol, vLLM, and a scripted engine for tests and demos."""
