"""Checks before a long job: short reruns on a copy, judged as an expert would."""
