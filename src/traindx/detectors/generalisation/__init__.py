"""Faults that show between training and validation."""
