"""Tuning maxNumSeqs and memory of running engine pods."""
