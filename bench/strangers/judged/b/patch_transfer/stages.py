import torch
from torch.nn import functional as F

from nets import DigitClassifier, MaskedAutoencoder


def batches(n, size, g):
    yield from torch.randperm(n, generator=g).split(size)


def pretrain(images, path, epochs, g):
    mae = MaskedAutoencoder()
    opt = torch.optim.AdamW(mae.parameters(), 3e-3)
    mae.train()
    for ep in range(epochs):
        tot = 0.0
        for rows in batches(len(images), 64, g):
            opt.zero_grad()
            loss = mae(images[rows])
            loss.backward()
            opt.step()
            tot += loss.item() * len(rows)
        print(f"  pretrain {ep}: {tot / len(images):.4f}")
    torch.save({"model": mae.state_dict(), "epochs": epochs}, path)


def load_pretrained(net, path):
    """Take over the encoder weights; the reconstruction head is not needed here, the classifier head is new."""
    weights = torch.load(path, map_location="cpu", weights_only=True)["model"]
    weights = {k.removeprefix("module."): v for k, v in weights.items() if not k.startswith("decoder.")}
    net.load_state_dict(weights, strict=False)
    print(f"  loaded pretrained weights from {path.name}")
    return net


def finetune(train, val, path, epochs, g):
    net = load_pretrained(DigitClassifier(), path)
    opt = torch.optim.AdamW([{"params": net.backbone.parameters(), "lr": 1e-3},
                             {"params": net.head.parameters(), "lr": 3e-3}])
    (x, y), (vx, vy) = train, val
    for ep in range(epochs):
        net.train()
        for rows in batches(len(y), 16, g):
            opt.zero_grad()
            loss = F.cross_entropy(net(x[rows]), y[rows])
            loss.backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            acc = (net(vx).argmax(1) == vy).float().mean()
        print(f"  finetune {ep}: loss {loss.item():.3f} val acc {acc:.3f}")
