"""Reruns of a command on copies of its project, within limits, away from what is the user's."""
