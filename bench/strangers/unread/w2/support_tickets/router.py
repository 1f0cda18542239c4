import torch
from torch import nn

from textpipe import PAD

QUEUES = ["billing", "login", "shipping"]


class RouterNet(nn.Module):
    def __init__(self, n_words, dim=32):
        super().__init__()
        self.emb = nn.Embedding(n_words, dim, padding_idx=PAD)
        self.fc = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, len(QUEUES)))

    def forward(self, ids):
        mask = (ids != PAD).unsqueeze(-1)
        mean = (self.emb(ids) * mask).sum(1) / mask.sum(1).clamp(min=1)
        return self.fc(mean)


class TicketRouter:
    """What the help desk calls: raw text in, queue name out."""

    def __init__(self, net, vocab):
        self.net, self.vocab = net.eval(), vocab

    @torch.inference_mode()
    def __call__(self, texts):
        ids = torch.stack([self.vocab.encode(t) for t in texts])
        return [QUEUES[k] for k in self.net(ids).argmax(1).tolist()]
