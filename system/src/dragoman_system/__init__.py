"""What the parts need of the operating system: command lines, logs, files that change, glossaries on a disk."""
