"""What a starting pod takes from a ready one of its deployment: compiled kernels, and what profiling found."""
