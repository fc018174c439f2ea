"""The maxNumSeqs that fits the measured load; docs/how-to/tuning.md describes the rules."""
