"""Faults in how fast a run goes."""
