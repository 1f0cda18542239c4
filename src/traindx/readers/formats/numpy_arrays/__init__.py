"""NumPy arrays of metrics: `losses.npy`, `evaluations.npz`."""
