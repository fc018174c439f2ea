"""How many sequences an engine should run at once, from what running pods measure; docs/tuning.md tells the rules."""
