import torch
from torch import nn


class TextEncoder(nn.Module):
    def __init__(self, n_words, dim):
        super().__init__()
        self.table = nn.EmbeddingBag(n_words, dim, mode="mean")
        self.mix = nn.Sequential(nn.Linear(dim, dim), nn.GELU())

    def forward(self, ids):
        return self.mix(self.table(ids))


class AudioEncoder(nn.Module):
    def __init__(self, n_bands, dim):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(n_bands, dim, 3, padding=1), nn.GELU(), nn.AdaptiveAvgPool1d(1))

    def forward(self, spec):
        return self.conv(spec).flatten(1)


class Fusion(nn.Module):
    """Normalise both views, gate them against each other and classify."""

    def __init__(self, n_words, n_bands, n_classes, dim=32):
        super().__init__()
        self.text = TextEncoder(n_words, dim)
        self.audio = AudioEncoder(n_bands, dim)
        self.norm_t = nn.LayerNorm(dim)
        self.norm_a = nn.LayerNorm(dim)
        self.gate = nn.Sequential(nn.Linear(2 * dim, 2 * dim), nn.Sigmoid())
        self.head = nn.Sequential(nn.Linear(2 * dim, dim), nn.GELU(), nn.Linear(dim, n_classes))

    def forward(self, ids, spec):
        t = self.text(ids)
        a = self.audio(spec)
        joint = torch.cat([self.norm_t(t), self.norm_a(t)], dim=-1)
        return self.head(joint * self.gate(joint))
