"""Readers: one file per format. Each owns every quirk of its format and never executes what it reads."""
