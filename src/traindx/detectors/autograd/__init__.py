"""Faults in how gradients are recorded and run back."""
