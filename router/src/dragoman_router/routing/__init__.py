"""Where a request goes: decisions over values, without I/O, clocks and randomness of their own."""
