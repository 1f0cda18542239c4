from contextlib import contextmanager

import torch


@contextmanager
def evaluating(model):
    """Switch to inference for the body of the with-statement, then go back to the mode from before."""
    model.eval()
    previous = model.training
    try:
        with torch.no_grad():
            yield model
    finally:
        model.train(previous)
