"""Compiled kernels and results of profiling, which a starting pod copies from a ready pod of its deployment."""
