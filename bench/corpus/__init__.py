"""Incidents with known causes: faults injected into small real training programs."""
