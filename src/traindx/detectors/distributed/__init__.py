"""Faults in training over several processes."""
