"""Tuning of maxNumSeqs."""
