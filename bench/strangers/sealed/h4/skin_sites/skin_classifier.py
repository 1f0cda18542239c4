import logging

import numpy as np
import torch
from sklearn.metrics import balanced_accuracy_score
from sklearn.preprocessing import LabelEncoder, StandardScaler
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

logging.basicConfig(level=logging.INFO, format="[%(levelname)s] %(message)s")
LOG = logging.getLogger("skin")

DIAGNOSES = ["acne", "eczema", "melanoma", "naevus", "psoriasis", "rosacea"]
SITES = {
    "north": ["acne", "eczema", "naevus", "rosacea"],
    "harbour": ["eczema", "melanoma", "psoriasis"],
    "university": DIAGNOSES,
    "rural": ["melanoma", "naevus", "psoriasis", "rosacea"],
}
_SIGNATURES = np.random.default_rng(12).normal(0, 0.8, size=(len(DIAGNOSES), 32))


class SiteArchive:
    """Image embeddings and written diagnoses of one clinic."""

    def __init__(self, name, n, seed):
        rng = np.random.default_rng(seed)
        self.name = name
        self.diagnosis = rng.choice(SITES[name], size=n)
        codes = [DIAGNOSES.index(d) for d in self.diagnosis]
        self.embedding = (_SIGNATURES[codes] + rng.normal(0, 1.0, size=(n, 32))).astype(np.float32)

    def as_dataset(self, scaler):
        target = LabelEncoder().fit_transform(self.diagnosis)
        LOG.info("%-10s %d cases, %d diagnoses", self.name, len(target), target.max() + 1)
        x = scaler.transform(self.embedding).astype(np.float32)
        return TensorDataset(torch.from_numpy(x), torch.from_numpy(target).long())


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, len(DIAGNOSES)))

    def forward(self, x):
        return self.net(x)


def evaluate(model, loader):
    model.eval()
    truth, guess = [], []
    with torch.no_grad():
        for x, y in loader:
            truth.append(y)
            guess.append(model(x).argmax(1))
    return balanced_accuracy_score(torch.cat(truth), torch.cat(guess))


def main():
    torch.manual_seed(0)
    archives = [SiteArchive(name, 250, seed) for seed, name in enumerate(SITES)]
    scaler = StandardScaler().fit(np.concatenate([a.embedding for a in archives]))
    train = ConcatDataset([a.as_dataset(scaler) for a in archives])
    holdout = SiteArchive("university", 300, seed=50).as_dataset(scaler)
    train_loader = DataLoader(train, batch_size=50, shuffle=True)
    holdout_loader = DataLoader(holdout, batch_size=100)

    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(1, 13):
        model.train()
        running = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item()
        LOG.info("epoch %d loss %.3f balanced accuracy %.3f", epoch, running / len(train_loader),
                 evaluate(model, holdout_loader))


if __name__ == "__main__":
    main()
