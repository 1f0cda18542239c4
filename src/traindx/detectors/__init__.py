"""Detectors: one file per fault, in one folder per family: the rule, its documentation, its
examples."""
