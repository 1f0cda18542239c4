from contextlib import contextmanager

import torch


@contextmanager
def inference(net):
    """Temporarily switch `net` to inference (no autograd, no dropout), then put it back as it was."""
    net.eval()
    before = net.training
    try:
        with torch.no_grad():
            yield net
    finally:
        net.train(before)
