"""Pretrain a 1-D conv encoder on unlabelled sensor windows (reconstruction), then fine-tune on a
small labelled set. The encoder stays fixed for the first epochs, then its blocks are opened from
the top down (as in ULMFiT), each with a smaller learning rate."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

WIN = 64


def windows(n, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.linspace(0, 6.28, WIN)
    label = torch.randint(0, 3, (n,), generator=g)
    phase = torch.rand(n, 1, generator=g) * 6.28
    freq = torch.tensor([2.0, 3.0, 4.5])[label].unsqueeze(1)
    x = torch.sin(freq * t + phase) + 0.7 * torch.randn(n, WIN, generator=g)
    return x.unsqueeze(1), label


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([
            nn.Sequential(nn.Conv1d(1, 8, 7, stride=2, padding=3), nn.ReLU()),
            nn.Sequential(nn.Conv1d(8, 16, 5, stride=2, padding=2), nn.ReLU()),
            nn.Sequential(nn.Conv1d(16, 32, 3, stride=2, padding=1), nn.ReLU()),
        ])

    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return x


class Classifier(nn.Module):
    def __init__(self, encoder, n_classes=3):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Sequential(nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, n_classes))

    def forward(self, x):
        return self.head(self.encoder(x))


def pretrain(encoder, x, epochs=3):
    decoder = nn.Sequential(nn.Flatten(), nn.Linear(32 * WIN // 8, WIN))
    opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
    for _ in range(epochs):
        for (xb,) in DataLoader(TensorDataset(x), 64, shuffle=True):
            loss = nn.functional.mse_loss(decoder(encoder(xb)), xb.squeeze(1))
            opt.zero_grad()
            loss.backward()
            opt.step()
    print(f"pretraining finished, reconstruction {loss.item():.3f}")


def freeze(module):
    for p in module.parameters():
        p.requires_grad = False


def unfreeze_next(encoder, stage):
    """stage 0 opens the last block, stage 1 the one before, ..."""
    if stage < len(encoder.blocks):
        block = encoder.blocks[-1 - stage]
        block.requires_grad = True
        print(f"  opened block {len(encoder.blocks) - 1 - stage}")


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    return sum((model(x).argmax(1) == y).sum().item() for x, y in loader) / len(loader.dataset)


def main():
    torch.manual_seed(0)
    encoder = Encoder()
    pretrain(encoder, windows(1024, 1)[0])

    train, val = random_split(TensorDataset(*windows(400, 2)), [300, 100], torch.Generator().manual_seed(0))
    train_dl, val_dl = DataLoader(train, 32, shuffle=True), DataLoader(val, 100)

    model = Classifier(encoder)
    freeze(encoder)
    base = 3e-3
    groups = [{"params": model.head.parameters(), "lr": base}]
    groups += [{"params": b.parameters(), "lr": base / 2 ** (i + 1)} for i, b in enumerate(reversed(encoder.blocks))]
    opt = torch.optim.AdamW(groups, lr=base)
    ce = nn.CrossEntropyLoss()

    for epoch in range(10):
        if epoch >= 2 and epoch % 2 == 0:
            unfreeze_next(encoder, (epoch - 2) // 2)
        model.train()
        for x, y in train_dl:
            opt.zero_grad()
            loss = ce(model(x), y)
            loss.backward()
            opt.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}, val acc {evaluate(model, val_dl):.3f}")


if __name__ == "__main__":
    main()
