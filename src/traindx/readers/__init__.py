"""Readers: one file or package per format, each the owner of every quirk of its format."""
