"""The other forms of each fault, one module per family: ways in which people write the same."""
