"""The maxNumSeqs that fits the measured load; docs/tuning.md describes the rules."""
