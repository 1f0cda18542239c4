"""What is known and claimed about runs, as values: no format, no rule, no belief."""
