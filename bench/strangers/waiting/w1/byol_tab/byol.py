import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split


def augment(x):
    keep = (torch.rand_like(x) > 0.2).float()
    return x * keep + 0.1 * torch.randn_like(x)


class Online(nn.Module):
    def __init__(self, d=64, feat=128, proj=64):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(d, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, feat))
        self.projector = nn.Sequential(nn.Linear(feat, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, proj))

    def forward(self, x):
        return self.projector(self.encoder(x))


class BYOL(nn.Module):
    def __init__(self, tau=0.99):
        super().__init__()
        self.tau = tau
        self.online = Online()
        self.predictor = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 64))
        self.target = copy.deepcopy(self.online)
        for p in self.target.parameters():
            p.requires_grad = False

    @torch.no_grad()
    def update_target(self):
        for po, pt in zip(self.online.parameters(), self.target.parameters()):
            pt.data.mul_(self.tau).add_(po.data, alpha=1 - self.tau)

    def forward(self, a, b):
        pa, pb = self.predictor(self.online(a)), self.predictor(self.online(b))
        with torch.no_grad():
            ta, tb = self.target(a), self.target(b)
        return 4 - 2 * (F.cosine_similarity(pa, tb.detach()).mean() + F.cosine_similarity(pb, ta.detach()).mean())


def linear_probe(encoder, Xtr, ytr, Xte, yte):
    encoder.eval()
    with torch.no_grad():
        ftr, fte = encoder(Xtr).numpy(), encoder(Xte).numpy()
    encoder.train()
    return LogisticRegression(max_iter=300).fit(ftr, ytr).score(fte, yte)


if __name__ == "__main__":
    torch.manual_seed(0)
    X, y = load_digits(return_X_y=True)
    Xtr, Xte, ytr, yte = train_test_split(X / 16.0, y, test_size=0.3, random_state=0)
    Xtr, Xte = torch.tensor(Xtr, dtype=torch.float32), torch.tensor(Xte, dtype=torch.float32)
    model = BYOL()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3, weight_decay=1e-4)
    for epoch in range(30):
        model.train()
        tot = n = 0
        for idx in torch.randperm(len(Xtr)).split(128):
            if len(idx) < 32:
                continue
            loss = model(augment(Xtr[idx]), augment(Xtr[idx]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            model.update_target()
            tot, n = tot + loss.item(), n + 1
        if epoch % 10 == 9:
            print(epoch + 1, f"loss {tot / n:.4f}", f"probe {linear_probe(model.online.encoder, Xtr, ytr, Xte, yte):.3f}")
