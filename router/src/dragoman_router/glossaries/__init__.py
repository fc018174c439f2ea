"""Callers' glossaries, kept where every router sees them; imported only where there is such a place."""
