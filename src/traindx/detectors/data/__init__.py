"""Faults in what the model is fed."""
