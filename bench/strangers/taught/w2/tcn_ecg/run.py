import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from tcn import TCN


def beats(n, length=128, seed=0):
    """Two-lead toy beats: normal, wide QRS, missing P wave."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, length)
    bump = lambda c, w: np.exp(-((t - c) / w) ** 2)
    y = rng.integers(0, 3, n)
    x = np.empty((n, 2, length), dtype=np.float32)
    for i, c in enumerate(y):
        s = rng.normal(0, 0.02)
        p = 0.0 if c == 2 else 0.2
        w = 0.045 if c == 1 else 0.02
        sig = p * bump(0.2 + s, 0.03) + bump(0.4 + s, w) + 0.3 * bump(0.7 + s, 0.06)
        x[i, 0] = sig + rng.normal(0, 0.08, length)
        x[i, 1] = -0.6 * sig + rng.normal(0, 0.08, length)
    return torch.from_numpy(x), torch.from_numpy(y)


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train = DataLoader(TensorDataset(*beats(900)), batch_size=32, shuffle=True)
    xv, yv = beats(300, seed=1)
    model = TCN(2, [16, 16, 32, 32], 3).to(device)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(8):
        model.train()
        tot = 0.0
        for x, y in train:
            x, y = x.to(device), y.to(device)
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item()
        model.eval()
        with torch.no_grad():
            acc = (model(xv.to(device)).argmax(1).cpu() == yv).float().mean()
        print(f"epoch {epoch}: loss {tot / len(train):.3f}  val acc {acc:.3f}")


if __name__ == "__main__":
    main()
