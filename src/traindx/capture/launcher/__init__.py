"""Riding along: the parent of a training command, which runs as if it were alone."""
