"""Faults in device and host memory."""
