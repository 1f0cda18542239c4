import torch
from torch import nn


class DurationPredictor(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 1))

    def forward(self, h):
        return self.net(h).squeeze(-1)


def expand(h, durations):
    rows = [torch.repeat_interleave(v, d, dim=0) for v, d in zip(h, durations)]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


class TinyAcoustic(nn.Module):
    def __init__(self, n_phones, dim, n_mels):
        super().__init__()
        self.phones = nn.Embedding(n_phones, dim)
        self.context = nn.GRU(dim, dim // 2, batch_first=True, bidirectional=True)
        self.durations = DurationPredictor(dim)
        self.decoder = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, n_mels))

    def forward(self, ids, aligned):
        h, _ = self.context(self.phones(ids))
        frames = torch.round(torch.exp(self.durations(h)))
        return self.decoder(expand(h, aligned)), frames
