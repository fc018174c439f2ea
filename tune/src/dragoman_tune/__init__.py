"""Finds the engine settings that a measured load wants: `dragoman tune`.

Drives pods from outside, through `dragoman serve` and `POST /translate`; imports no other part.
"""
