"""A real broken run: the program, its configuration, and the log it left."""
