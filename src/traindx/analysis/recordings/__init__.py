"""Understanding recordings: what samples, ranks, traces and breakdowns say, for detectors."""
