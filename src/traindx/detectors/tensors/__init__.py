"""Faults in single tensors and calls."""
