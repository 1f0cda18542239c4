"""Checkpoints: damaged, unsafe, incomplete."""
