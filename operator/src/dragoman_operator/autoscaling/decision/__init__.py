"""The scaling decision: pure functions of metrics and history. docs/autoscaling.md describes the rules."""
