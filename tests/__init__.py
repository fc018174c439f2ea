"""The tests; a package, because some distributions install one of the same name."""
