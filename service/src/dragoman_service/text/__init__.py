"""Text before and after the model: segments, markup, guards, detection, glossaries; pure functions all.

Nothing here knows HTTP, vLLM or an event loop; `docs/explanation/text.md` has what it promises.
"""
