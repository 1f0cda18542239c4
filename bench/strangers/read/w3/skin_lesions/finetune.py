import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class LesionEncoder(nn.Module):
    def __init__(self, width: int = 12):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.stage = nn.Sequential(
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(),
        )

    def forward(self, x):
        return self.stage(self.stem(x)).mean((2, 3))


class LesionClassifier(nn.Module):
    """Stem statistics stay fixed, the rest adapts to the new clinic."""

    def __init__(self, encoder: LesionEncoder, classes: int):
        super().__init__()
        self.encoder = encoder
        self.dropout = nn.Dropout(0.4)
        self.head = nn.Linear(24, classes)

    def train(self, mode: bool = True):
        super().train()
        for m in self.encoder.stem.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.eval()
        return self

    def forward(self, x):
        return self.head(self.dropout(self.encoder(x)))


def clinic(n, shift, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, 24), torch.linspace(-1, 1, 24), indexing="ij")
    r = (xx**2 + yy**2).sqrt()
    radius = 0.3 + 0.2 * y.float().view(-1, 1, 1)
    blob = torch.sigmoid((radius - r) * 12)
    x = blob[:, None] * torch.tensor([0.8, 0.4, 0.3]).view(1, 3, 1, 1) + shift
    return x + 0.25 * torch.randn(n, 3, 24, 24, generator=g), y


def pretrain(encoder, epochs=3):
    net = nn.Sequential(encoder, nn.Linear(24, 3)).train()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    source = DataLoader(TensorDataset(*clinic(384, 0.0, 0)), batch_size=32, shuffle=True)
    for _ in range(epochs):
        for x, y in source:
            opt.zero_grad(set_to_none=True)
            F.cross_entropy(net(x), y).backward()
            opt.step()
    return encoder


def evaluate(model, loader):
    model.eval()
    loss = correct = count = 0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            loss += F.cross_entropy(out, y, reduction="sum").item()
            correct += (out.argmax(1) == y).sum().item()
            count += y.numel()
    return loss / count, correct / count


def main():
    torch.manual_seed(1)
    train = DataLoader(TensorDataset(*clinic(384, 0.3, 1)), batch_size=32, shuffle=True)
    val = DataLoader(TensorDataset(*clinic(96, 0.3, 2)), batch_size=16)
    model = LesionClassifier(pretrain(LesionEncoder()), 3)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
    best = float("inf")
    best_state = None
    for epoch in range(6):
        model.train()
        for x, y in train:
            opt.zero_grad(set_to_none=True)
            F.cross_entropy(model(x), y, label_smoothing=0.05).backward()
            opt.step()
        val_loss, val_acc = evaluate(model, val)
        print(f"{epoch}: val loss {val_loss:.4f} acc {val_acc:.3f}")
        if val_loss < best:
            best = val_loss
            best_state = {k: v.clone() for k, v in model.state_dict().items()}
    model.load_state_dict(best_state)
    print("best:", *("%.4f" % v for v in evaluate(model, val)))


if __name__ == "__main__":
    main()
