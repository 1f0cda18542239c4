import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader


class IncrementalNet(nn.Module):
    def __init__(self, in_dim=64, feat_dim=64):
        super().__init__()
        self.extractor = nn.Sequential(nn.Linear(in_dim, 128), nn.ReLU(), nn.Linear(128, feat_dim), nn.ReLU())
        self.feat_dim = feat_dim
        self.fc = None

    def grow(self, n_total):
        """Enlarge the classifier to n_total outputs and keep what is known."""
        fc = nn.Linear(self.feat_dim, n_total)
        if self.fc is not None:
            old = self.fc.out_features
            fc.weight.data[:old] = self.fc.weight.data
            fc.bias.data[:old] = self.fc.bias.data
        self.fc = fc

    def forward(self, x):
        return self.fc(self.extractor(x))


class LwFLearner:
    """Learning without Forgetting (Li & Hoiem) for class-incremental splits."""

    def __init__(self, first_classes, lr=0.05, lamda=1.0, T=2.0):
        self.net = IncrementalNet()
        self.net.grow(first_classes)
        self.known = 0
        self.old_net = None
        self.lamda, self.T = lamda, T
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=lr, momentum=0.9)

    def before_task(self, n_new):
        if self.known > 0:
            self.old_net = copy.deepcopy(self.net).eval()
            for p in self.old_net.parameters():
                p.requires_grad_(False)
            self.net.grow(self.known + n_new)
        self.total = self.known + n_new

    def _loss(self, x, y):
        logits = self.net(x)
        if self.old_net is None:
            return F.cross_entropy(logits, y)
        ce = F.cross_entropy(logits[:, self.known:], y - self.known)
        with torch.no_grad():
            soft = F.softmax(self.old_net(x) / self.T, 1)
        kd = -(soft * F.log_softmax(logits[:, :self.known] / self.T, 1)).sum(1).mean()
        return ce + self.lamda * kd

    def train_task(self, dataset, epochs=15, bs=32):
        loader = DataLoader(dataset, bs, shuffle=True)
        self.net.train()
        for ep in range(epochs):
            tot = 0.0
            for x, y in loader:
                loss = self._loss(x, y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                tot += loss.item()
        self.known = self.total
        return tot / len(loader)

    @torch.no_grad()
    def accuracy(self, x, y):
        self.net.eval()
        return (self.net(x).argmax(1) == y).float().mean().item()
