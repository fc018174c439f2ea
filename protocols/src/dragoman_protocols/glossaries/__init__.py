"""Glossaries that callers make and keep: their values, the formats they come in, and where they live."""
