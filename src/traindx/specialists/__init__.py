"""Fields of expertise: their playbooks, the way from a question to them, and their plugin."""
