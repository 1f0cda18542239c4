"""Architecture: how the parameters of a model are spread."""
