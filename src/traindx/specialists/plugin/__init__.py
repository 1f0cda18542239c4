"""The playbooks as skills for coding assistants: what they say, and the folders they come in."""
