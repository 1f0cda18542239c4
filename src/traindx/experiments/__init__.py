"""Counterfactual reruns: the user's own command on a copy, with one change at a time."""
