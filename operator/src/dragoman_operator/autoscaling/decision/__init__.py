"""The scaling decision: pure functions of metrics and history. docs/explanation/scaling.md describes the rules."""
