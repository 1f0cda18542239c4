"""Tests of hypotheses: control against changed, one change at a time, until they are decided."""
