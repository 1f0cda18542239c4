import logging

import torch
from torch.utils.data import DataLoader, TensorDataset, random_split

from ctr.model import DeepFM
from ctr.trainer import Trainer

FIELDS = [50, 200, 12, 7, 30]


def build_dataset(n=20_000, seed=5):
    g = torch.Generator().manual_seed(seed)
    x = torch.stack([torch.randint(f, (n,), generator=g) for f in FIELDS], dim=1)
    effects = [torch.randn(f, generator=g) for f in FIELDS]
    logit = sum(e[x[:, i]] for i, e in enumerate(effects)) - 1.0
    y = torch.bernoulli(torch.sigmoid(logit), generator=g)
    return TensorDataset(x, y)


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.manual_seed(5)
    train, valid = random_split(build_dataset(), [18_000, 2_000])
    model = DeepFM(FIELDS)
    trainer = Trainer(
        model,
        torch.optim.Adam(model.parameters(), lr=2e-3),
        DataLoader(train, batch_size=256, shuffle=True),
        DataLoader(valid, batch_size=1024),
        device="cuda" if torch.cuda.is_available() else "cpu",
    )
    trainer.fit(epochs=5)


if __name__ == "__main__":
    main()
