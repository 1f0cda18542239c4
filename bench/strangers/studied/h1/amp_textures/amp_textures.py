import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"
amp_dtype = torch.float16 if device == "cuda" else torch.bfloat16


def textures(n, seed, size=16):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[:size, :size] / size
    y = rng.integers(0, 4, n)
    imgs = []
    for k in y:
        f, ph = rng.uniform(2.5, 4), rng.uniform(0, 6.28)
        base = {0: np.sin(2 * np.pi * f * xx + ph), 1: np.sin(2 * np.pi * f * yy + ph),
                2: np.sin(2 * np.pi * f * (xx + yy) / 1.4 + ph),
                3: np.sign(np.sin(2 * np.pi * f * xx + ph) * np.sin(2 * np.pi * f * yy))}[int(k)]
        imgs.append(base + rng.normal(0, 0.6, base.shape))
    return torch.tensor(np.stack(imgs), dtype=torch.float32)[:, None], torch.from_numpy(y)


class TextureNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.fc = nn.Linear(24 * 16, 4)

    def forward(self, x):
        return self.fc(self.conv(x).flatten(1))


def train_epoch(model, loader, optimizer, scaler, loss_fn, max_grad_norm):
    model.train()
    total = 0.0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device_type=device, dtype=amp_dtype):
            logits = model(x)
            loss = loss_fn(logits, y)
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)
        scaler.step(optimizer)
        scaler.update()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def validate(model, loader):
    model.eval()
    good = n = 0
    for x, y in loader:
        good += (model(x.to(device)).argmax(1).cpu() == y).sum().item()
        n += len(y)
    return good / n


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(TensorDataset(*textures(640, 0)), batch_size=32, shuffle=True)
    val_loader = DataLoader(TensorDataset(*textures(200, 1)), batch_size=100)
    model = TextureNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scaler = torch.amp.GradScaler(device)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(5):
        start = time.time()
        loss = train_epoch(model, train_loader, optimizer, scaler, loss_fn, max_grad_norm=1.0)
        print(f"epoch {epoch} loss {loss:.4f} val acc {validate(model, val_loader):.3f} "
              f"scale {scaler.get_scale():.0f} ({time.time() - start:.1f}s)")


if __name__ == "__main__":
    main()
