import torch.nn.functional as F
from torch import nn


class BoundaryBCE(nn.Module):
    """Binary cross-entropy with more weight near the rim of a cell."""

    def __init__(self, rim_weight=2.0):
        super().__init__()
        self.rim_weight = rim_weight

    def forward(self, seg, mask):
        rim = F.max_pool2d(mask, 3, 1, 1) + F.max_pool2d(-mask, 3, 1, 1)
        return F.binary_cross_entropy_with_logits(seg, mask, weight=1 + self.rim_weight * rim)


class Tversky(nn.Module):
    """1 - Tversky index of a soft foreground map in [0, 1]."""

    def __init__(self, alpha=0.3, beta=0.7, eps=1.0):
        super().__init__()
        self.alpha, self.beta, self.eps = alpha, beta, eps

    def forward(self, seg, mask):
        tp = (seg * mask).sum((1, 2, 3))
        fp = (seg * (1 - mask)).sum((1, 2, 3))
        fn = ((1 - seg) * mask).sum((1, 2, 3))
        index = (tp + self.eps) / (tp + self.alpha * fp + self.beta * fn + self.eps)
        return (1 - index).mean()


class Mixed(nn.Module):
    def __init__(self, terms):
        super().__init__()
        self.weights = [w for w, _ in terms]
        self.terms = nn.ModuleList(t for _, t in terms)

    def forward(self, seg, mask):
        return sum(w * term(seg, mask) for w, term in zip(self.weights, self.terms))


def build_loss(spec):
    table = {"bce": BoundaryBCE, "tversky": Tversky}
    return Mixed([(s["weight"], table[s["name"]](**s.get("args", {}))) for s in spec])
