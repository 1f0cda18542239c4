"""How often traindx is right, how often it cries wolf, and what its confidence is worth."""
