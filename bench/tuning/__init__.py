"""Tuning of maxNumSeqs under a load that shifts, against a grid of fixed values."""
