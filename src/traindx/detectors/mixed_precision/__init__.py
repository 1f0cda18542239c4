"""Faults of training in two precisions."""
