import argparse

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from encoders import Fusion

N_WORDS, N_BANDS = 60, 12


def clips(n, seed):
    """What is said gives valence (word range), how it is said gives arousal (spectral tilt)."""
    g = torch.Generator().manual_seed(seed)
    valence = torch.randint(2, (n,), generator=g)
    arousal = torch.randint(2, (n,), generator=g)
    ids = torch.randint(0, N_WORDS // 2, (n, 8), generator=g) + (valence * (N_WORDS // 3))[:, None]
    tilt = torch.linspace(-1, 1, N_BANDS) * (arousal * 2 - 1)[:, None]
    spec = tilt[..., None] + 1.5 * torch.randn(n, N_BANDS, 20, generator=g)
    return TensorDataset(ids, spec, 2 * valence + arousal)


def evaluate(model, loader):
    model.eval()
    correct = torch.zeros(4)
    count = torch.zeros(4)
    with torch.no_grad():
        for ids, spec, y in loader:
            ok = (model(ids, spec).argmax(1) == y).float()
            correct.scatter_add_(0, y, ok)
            count.scatter_add_(0, y, torch.ones_like(ok))
    return correct / count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--batch_size", type=int, default=40)
    opt = parser.parse_args()

    torch.manual_seed(0)
    train = DataLoader(clips(1000, 1), opt.batch_size, shuffle=True)
    test = DataLoader(clips(300, 2), 100)
    model = Fusion(N_WORDS, N_BANDS, 4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=opt.lr)
    for epoch in range(opt.epochs):
        model.train()
        for ids, spec, y in train:
            loss = F.cross_entropy(model(ids, spec), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        recall = evaluate(model, test)
        print(f"epoch {epoch}: loss {loss.item():.3f}, UAR {recall.mean():.3f}, per class {recall.tolist()}")


if __name__ == "__main__":
    main()
