"""The training programs whose steps are timed with and without a recorder."""
