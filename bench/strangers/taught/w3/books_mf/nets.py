import torch
import torch.nn as nn


class NeuMF(nn.Module):
    """Neural matrix factorisation (He et al. 2017), regression head."""

    def __init__(self, n_users, n_items, k=16, p=0.4):
        super().__init__()
        self.ug, self.ig = nn.Embedding(n_users, k), nn.Embedding(n_items, k)
        self.um, self.im = nn.Embedding(n_users, k), nn.Embedding(n_items, k)
        for e in (self.ug, self.ig, self.um, self.im):
            nn.init.normal_(e.weight, std=0.1)
        self.mlp = nn.Sequential(nn.Linear(2 * k, 32), nn.ReLU(), nn.Dropout(p), nn.Linear(32, 16), nn.ReLU(), nn.Dropout(p))
        self.out = nn.Linear(k + 16, 1)
        nn.init.constant_(self.out.bias, 3.5)

    def forward(self, u, i):
        gmf = self.ug(u) * self.ig(i)
        mlp = self.mlp(torch.cat([self.um(u), self.im(i)], -1))
        return self.out(torch.cat([gmf, mlp], -1)).squeeze(-1)
