"""Which examples the property tests try: the same in every run, unless a search for new ones is asked for."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("search", derandomize=False, max_examples=2_000, deadline=None, print_blob=True)
settings.load_profile("same")

pytest_plugins = ["tests.support.redis"]
