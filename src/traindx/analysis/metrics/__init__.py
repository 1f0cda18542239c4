"""What the logged metrics of a run say: scores, rates, norms, rewards and losses."""
