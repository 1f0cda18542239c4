"""Faults of the machine and the process."""
