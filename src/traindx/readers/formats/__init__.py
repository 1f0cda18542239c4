"""The formats: one room each, the owner of every quirk of its format."""
