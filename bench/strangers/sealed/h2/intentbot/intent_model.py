import torch
from torch import nn
from torch.nn import functional as F


class IntentModel(nn.Module):
    """Bag of words plus GRU; knows how to compute its own loss and optimiser."""

    def __init__(self, n_words, n_intents, options):
        super().__init__()
        self.training = options.training
        self.words = nn.Embedding(n_words, options.dim, padding_idx=0)
        self.gru = nn.GRU(options.dim, options.dim, batch_first=True)
        self.norm = nn.LayerNorm(2 * options.dim)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(2 * options.dim, n_intents)

    def optimizer(self):
        return torch.optim.AdamW(self.parameters(), lr=self.training.lr, weight_decay=self.training.weight_decay)

    def forward(self, ids):
        e = self.words(ids)
        mask = (ids != 0).unsqueeze(-1)
        bag = (e * mask).sum(1) / mask.sum(1).clamp(min=1)
        _, last = self.gru(e)
        return self.out(self.drop(self.norm(torch.cat([bag, last[-1]], dim=-1))))

    def loss(self, ids, intents):
        dropped = torch.rand(ids.shape) < self.training.word_dropout
        scores = self(ids.masked_fill(dropped, 1))
        return F.cross_entropy(scores, intents, label_smoothing=self.training.label_smoothing)
