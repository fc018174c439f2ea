"""The scaling decision: pure functions of metrics and history. docs/how-to/autoscaling.md describes the rules."""
