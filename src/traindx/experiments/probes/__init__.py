"""Short reruns with one change each, for runs that learn, only worse than they could."""
