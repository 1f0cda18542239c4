from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Backbone(nn.Sequential):
    def __init__(self, width: int = 16):
        super().__init__(
            nn.Conv2d(1, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        )


class Probe(nn.Module):
    """Linear probe: the backbone is a fixed feature extractor, only the head learns."""

    def __init__(self, backbone: Backbone, classes: int):
        super().__init__()
        self.backbone = backbone.requires_grad_(False)
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(128, classes))

    def train(self, mode: bool = True) -> "Probe":
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            features = self.backbone(x)
        return self.head(features)


def scans(n: int, n_classes: int, seed: int) -> TensorDataset:
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(n_classes, (n,), generator=g)
    grid = torch.linspace(-1, 1, 16)
    angle = y.float() * torch.pi / n_classes
    proj = grid.view(1, 1, 16) * angle.cos().view(-1, 1, 1) + grid.view(1, 16, 1) * angle.sin().view(-1, 1, 1)
    x = torch.sin(8 * proj + 6.28 * torch.rand(n, 1, 1, generator=g)) + 0.4 * torch.randn(n, 16, 16, generator=g)
    return TensorDataset(x.unsqueeze(1), y)


def fit(model: nn.Module, data: TensorDataset, held_out: TensorDataset, epochs: int, lr: float) -> None:
    loader = DataLoader(data, batch_size=32, shuffle=True)
    trainable = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.Adam(trainable, lr=lr)
    for epoch in range(1, epochs + 1):
        model.train()
        for x, y in loader:
            opt.zero_grad()
            F.cross_entropy(model(x), y).backward()
            opt.step()
        if epoch % 3 == 0:
            print(f"  {epoch:2d} train {accuracy(model, data):.3f} held out {accuracy(model, held_out):.3f}")


@torch.no_grad()
def accuracy(model: nn.Module, data: TensorDataset) -> float:
    model.eval()
    hits = sum((model(x).argmax(1) == y).sum().item() for x, y in DataLoader(data, batch_size=128))
    return hits / len(data)


def main() -> None:
    torch.manual_seed(20)
    backbone = Backbone()
    source = nn.Sequential(backbone, nn.Linear(128, 8))
    print("source task")
    fit(source, scans(800, 8, 0), scans(200, 8, 1), epochs=6, lr=3e-3)

    print("probe")
    fit(Probe(backbone, classes=5), scans(160, 5, 2), scans(300, 5, 3), epochs=9, lr=2e-3)


if __name__ == "__main__":
    main()
