"""Faults in how the weights are updated."""
