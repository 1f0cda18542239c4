import torch.nn.functional as F


def sequence_cross_entropy(logits, targets, smoothing=0.0):
    """logits (B, T, K), targets (B, T)"""
    k = logits.size(-1)
    return F.cross_entropy(logits.view(-1, k), targets.reshape(-1), label_smoothing=smoothing)
