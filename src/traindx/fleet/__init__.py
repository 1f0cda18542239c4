"""Many runs at once: one row a run, ranked by trouble, grouped by cause."""
