import numpy as np
import torch
from sklearn.datasets import make_classification
from torch import nn
from torch.utils.data import Dataset

from .base import BaseTrainer


class ChurnDataset(Dataset):
    def __init__(self, n, seed):
        X, y = make_classification(n, n_features=14, n_informative=8, weights=[0.8], random_state=21)
        plan = np.random.default_rng(21).integers(0, 5, n)
        part = slice(0, int(0.8 * n)) if seed == 0 else slice(int(0.8 * n), n)
        self.num = torch.tensor(X[part], dtype=torch.float32)
        self.plan = torch.tensor(plan[part])
        self.label = torch.tensor(y[part], dtype=torch.float32)

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        return {"num": self.num[i], "plan": self.plan[i], "label": self.label[i]}


class ChurnNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.plan = nn.Embedding(5, 4)
        self.mlp = nn.Sequential(nn.Linear(18, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, num, plan):
        return self.mlp(torch.cat([num, self.plan(plan)], 1)).squeeze(1)


class ChurnTrainer(BaseTrainer):
    def loss(self, batch):
        logit = self.model(batch["num"], batch["plan"])
        return nn.functional.binary_cross_entropy_with_logits(logit, batch["label"])

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        right = n = 0
        for batch in map(self._to_device, loader):
            guess = self.model(batch["num"], batch["plan"]) > 0
            right += (guess == batch["label"].bool()).sum().item()
            n += len(guess)
        return {"accuracy": round(right / n, 4)}
