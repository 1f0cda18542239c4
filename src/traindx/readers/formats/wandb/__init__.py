"""W&B offline runs: the transaction log that `wandb sync` would upload, read without wandb."""
