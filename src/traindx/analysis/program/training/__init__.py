"""What a program does to train: its models, optimizers, loaders, losses, loops and acts."""
