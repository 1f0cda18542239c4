"""Leaf shapes with numpy augmentation in loader workers."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info


class LeafOutlines(Dataset):
    """Radial outlines (64 angles) of three species."""

    def __init__(self, n, seed, augment):
        rng = np.random.default_rng(seed)
        phi = np.linspace(0, 2 * np.pi, 64, endpoint=False)
        self.label = rng.integers(0, 3, n)
        lobes = np.array([2, 3, 5])[self.label][:, None]
        depth = rng.uniform(0.1, 0.3, (n, 1))
        self.outline = 1 + depth * np.cos(lobes * phi) + 0.05 * rng.normal(size=(n, 64))
        self.augment = augment
        self.rng = np.random.default_rng(seed + 1)

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        r = self.outline[i]
        if self.augment:
            r = np.roll(r, self.rng.integers(64)) * self.rng.uniform(0.8, 1.25)
            r = r + self.rng.normal(0, 0.05, 64)
        r = (r - r.mean()) / r.std()
        return torch.from_numpy(r.astype(np.float32)), int(self.label[i])


def own_stream(worker_id):
    info = get_worker_info()
    info.dataset.rng = np.random.default_rng([info.seed, worker_id])


def main():
    torch.manual_seed(32)
    order = torch.Generator().manual_seed(32)
    train = DataLoader(LeafOutlines(480, 1, True), 32, shuffle=True, num_workers=2, worker_init_fn=own_stream, generator=order)
    test = DataLoader(LeafOutlines(150, 2, False), 75)
    net = nn.Sequential(nn.Unflatten(1, (1, 64)), nn.Conv1d(1, 16, 17, padding=8, padding_mode="circular"), nn.ReLU(),
                        nn.Conv1d(16, 32, 9, padding=4, padding_mode="circular"), nn.ReLU(), nn.AdaptiveAvgPool1d(1),
                        nn.Flatten(), nn.Linear(32, 3))
    opt = torch.optim.Adam(net.parameters(), lr=4e-3)
    for epoch in range(5):
        net.train()
        for x, y in train:
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            acc = sum((net(x).argmax(1) == y).sum().item() for x, y in test) / 150
        print(f"epoch {epoch} loss {loss.item():.3f} test {acc:.3f}")


if __name__ == "__main__":
    main()
