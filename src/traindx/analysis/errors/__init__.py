"""What an error says: the failure that came first, its sizes, and the line really at fault."""
