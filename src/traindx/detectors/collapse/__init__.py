"""Faults in which outputs lose their variety."""
