"""Faults in the arithmetic: NaN, infinity, overflow."""
