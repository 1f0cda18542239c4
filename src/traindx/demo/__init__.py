"""Real broken runs: one with the configuration and the log it left, one to run and to repair."""
