"""Prompts: the format of a family of models, and all families."""
