"""One training step and one evaluation step as a graph of operations: what depends on what."""
