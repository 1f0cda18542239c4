import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.nn import functional as F

from backbone import LinearProbe, RotationPretext


def batches(n, size):
    return torch.randperm(n).split(size)


def pretrain(images, epochs=4):
    model = RotationPretext()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.train()
    for epoch in range(epochs):
        for idx in batches(len(images), 64):
            turns = torch.randint(4, (len(idx),))
            x = torch.stack([torch.rot90(images[i], int(k), (1, 2)) for i, k in zip(idx, turns)])
            loss = F.cross_entropy(model(x), turns)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"pretext {epoch} {loss.item():.3f}")
    torch.save(model.state_dict(), "pretext.pt")


def probe(x, y, x_test, y_test, epochs=8):
    model = LinearProbe(classes=10).adopt(torch.load("pretext.pt"))
    opt = torch.optim.Adam(model.probe.parameters(), lr=3e-3)
    for epoch in range(epochs):
        model.train()
        for idx in batches(len(y), 32):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            acc = (model(x_test).argmax(1) == y_test).float().mean().item()
        print(f"probe {epoch} accuracy {acc:.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    d = load_digits()
    a, b, ya, yb = train_test_split(d.images, d.target, test_size=0.25, random_state=0, stratify=d.target)
    to_tensor = lambda im: torch.tensor(im / 16, dtype=torch.float32)[:, None]
    pretrain(to_tensor(a))
    probe(to_tensor(a[:300]), torch.tensor(ya[:300]), to_tensor(b), torch.tensor(yb))
