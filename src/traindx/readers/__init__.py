"""From artifacts to one run: opening, folders, context packages, and the formats."""
