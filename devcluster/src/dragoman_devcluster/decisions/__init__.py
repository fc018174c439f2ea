"""What the controllers decide: pure functions of snapshots, without I/O, clocks or randomness."""
