"""The engine pod: one process that loads a model into vLLM and answers translation requests over HTTP."""
