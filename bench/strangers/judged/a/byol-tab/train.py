"""BYOL on tabular rows with feature-corruption views; linear probe for evaluation."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split


def head(i, h, o):
    return nn.Sequential(nn.Linear(i, h), nn.BatchNorm1d(h), nn.ReLU(inplace=True), nn.Linear(h, o))


class BYOL(nn.Module):
    def __init__(self, dim, width=96, proj=32, tau=0.98):
        super().__init__()
        self.online_encoder = head(dim, width, width)
        self.online_projector = head(width, width, proj)
        self.predictor = head(proj, width, proj)
        self.target_encoder = copy.deepcopy(self.online_encoder)
        self.target_projector = copy.deepcopy(self.online_projector)
        for p in self.target_parameters():
            p.requires_grad = False
        self.tau = tau

    def target_parameters(self):
        return [*self.target_encoder.parameters(), *self.target_projector.parameters()]

    def online_parameters(self):
        return [*self.online_encoder.parameters(), *self.online_projector.parameters()]

    def trainable(self):
        return self.online_parameters() + list(self.predictor.parameters())

    @torch.no_grad()
    def move_target(self):
        for t, o in zip(self.target_parameters(), self.online_parameters()):
            t.mul_(self.tau).add_(o, alpha=1 - self.tau)

    def _half(self, a, b):
        p = self.predictor(self.online_projector(self.online_encoder(a)))
        with torch.no_grad():
            z = self.target_projector(self.target_encoder(b))
        return 2 - 2 * F.cosine_similarity(p, z.detach(), dim=-1).mean()

    def forward(self, a, b):
        return self._half(a, b) + self._half(b, a)


class Corrupt:
    """SCARF-like: replaces a share of the features by values of other rows."""
    def __init__(self, rate=0.3):
        self.rate = rate

    def __call__(self, x):
        other = x[torch.randperm(len(x))]
        return torch.where(torch.rand_like(x) < self.rate, other, x)


@torch.no_grad()
def embed(model, x):
    model.eval()
    z = model.online_encoder(x).numpy()
    model.train()
    return z


def main(seed=23, epochs=15, bs=128):
    torch.manual_seed(seed)
    X, y = load_digits(return_X_y=True)
    xtr, xte, ytr, yte = train_test_split(X / 16.0, y, test_size=0.3, random_state=seed, stratify=y)
    xtr, xte = (torch.tensor(a, dtype=torch.float32) for a in (xtr, xte))

    net, view = BYOL(xtr.shape[1]), Corrupt()
    opt = torch.optim.AdamW(net.trainable(), lr=2e-3, weight_decay=1e-4)
    net.train()
    for epoch in range(1, epochs + 1):
        for idx in torch.randperm(len(xtr)).split(bs):
            if len(idx) < bs:
                continue
            loss = net(view(xtr[idx]), view(xtr[idx]))
            opt.zero_grad()
            loss.backward()
            opt.step()
            net.move_target()
        if epoch % 5 == 0:
            probe = LogisticRegression(max_iter=500).fit(embed(net, xtr), ytr)
            print(f"epoch {epoch}: loss {loss.item():.3f}, linear probe {probe.score(embed(net, xte), yte):.3f}")


if __name__ == "__main__":
    main()
