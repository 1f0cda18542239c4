"""What a model put out, as a run logged it: sampled texts, predictions beside labels, counts."""
