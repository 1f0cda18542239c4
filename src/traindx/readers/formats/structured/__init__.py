"""JSON and JSON Lines: records of metrics, histories of lists, or a configuration."""
