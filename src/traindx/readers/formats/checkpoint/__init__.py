"""Checkpoints: what a training run saved, read without executing any of it and without torch."""
