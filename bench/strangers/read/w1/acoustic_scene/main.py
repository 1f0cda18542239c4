import logging

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from models import SceneNet

logging.basicConfig(level=logging.INFO)
SCENES = ("street", "park", "metro", "office")


def fake_spectrograms(n, n_mels=16, frames=30, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(len(SCENES), (n,), generator=g)
    profile = torch.randn(len(SCENES), n_mels, generator=torch.Generator().manual_seed(99))
    x = profile[y].unsqueeze(-1) + torch.randn(n, n_mels, frames, generator=g)
    return TensorDataset(x, y)


def main():
    torch.manual_seed(0)
    train = DataLoader(fake_spectrograms(400, seed=1), batch_size=40, shuffle=True)
    val = DataLoader(fake_spectrograms(100, seed=2), batch_size=50)
    net = SceneNet(16, len(SCENES))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(3):
        net.train()
        for x, y in train:
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            hits = sum((net(x).argmax(1) == y).sum().item() for x, y in val)
        logging.info("epoch %d loss %.3f acc %.3f", epoch, loss.item(), hits / len(val.dataset))
    net.report()


if __name__ == "__main__":
    main()
