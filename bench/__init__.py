"""Benchmarks: accuracy, speed and overhead, each beside a baseline."""
