"""Recordings: what a recorder wrote inside the training processes, one folder per command."""
