"""Jupyter notebooks: code cells are source, outputs are what the run printed."""
