"""Live capture: the recorder inside the training process, and the launcher that is its parent."""
