"""Processing of texts before and after the model, without I/O: segments, markup, quality checks.

Nothing here knows HTTP, vLLM or an event loop; `docs/explanation/text.md` has what it promises.
"""
