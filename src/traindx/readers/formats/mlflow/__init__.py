"""MLflow runs: the file store and the SQLite database, read without mlflow."""
