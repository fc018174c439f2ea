"""Just enough of each API to know who asks for which pair, and to refuse in words that its clients understand."""
