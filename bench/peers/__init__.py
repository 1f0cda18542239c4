"""Other people's recorders, each in an environment of its own, used as its documentation says."""
