"""The `dragoman` command: one entry for every part of the project."""
