import torch
from torch import nn


class SmoothedCrossEntropy(nn.Module):
    """Label-smoothed cross entropy over flattened (tokens, vocab) scores.

    Spreads `smoothing` uniformly over the other entries of the vocabulary.
    """

    def __init__(self, vocab, smoothing=0.1, ignore_index=-100):
        super().__init__()
        self.vocab = vocab
        self.smoothing = smoothing
        self.ignore_index = ignore_index
        self.kl = nn.KLDivLoss(reduction="batchmean")

    def forward(self, scores, target):
        logp = scores.log_softmax(-1)
        with torch.no_grad():
            dist = torch.full_like(logp, self.smoothing / (self.vocab - 1))
            dist.scatter_(1, target.unsqueeze(1), 1.0 - self.smoothing)
        return self.kl(logp, dist)
