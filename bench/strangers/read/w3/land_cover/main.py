import os
import tempfile

import torch
import torch.nn.functional as F

from models import Backbone, Classifier
from weights import load_backbone, save_classifier


def tiles(n, classes, seed):
    g = torch.Generator().manual_seed(seed)
    spectra = torch.randn(8, 4, generator=torch.Generator().manual_seed(42))
    y = torch.randint(classes, (n,), generator=g)
    freq = (1 + y.float()).view(-1, 1, 1, 1)
    ramp = torch.linspace(0, 3.14, 16).view(1, 1, 1, 16)
    x = 0.4 * spectra[y].view(n, 4, 1, 1) * torch.sin(freq * ramp) + 0.6 * torch.randn(n, 4, 16, 16, generator=g)
    return x, y


def fit(model, train, test, epochs, lr, batch=32):
    x, y = train
    opt = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=lr)
    for epoch in range(epochs):
        model.train()
        for i in torch.randperm(len(y)).split(batch):
            opt.zero_grad()
            F.cross_entropy(model(x[i]), y[i]).backward()
            opt.step()
        print(f"  epoch {epoch} accuracy {score(model, test):.3f}")


@torch.no_grad()
def score(model, data):
    model.eval()
    return (model(data[0]).argmax(1) == data[1]).float().mean().item()


def main():
    torch.manual_seed(6)
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "europe.pt")
        big = Classifier(Backbone(), 8)
        fit(big, tiles(1200, 8, 0), tiles(200, 8, 1), epochs=5, lr=3e-3)
        save_classifier(big, path)

        backbone = Backbone()
        n = load_backbone(backbone, path)
        print(f"initialised from {n} tensors")
    small = Classifier(backbone, 4)
    fit(small, tiles(48, 4, 2), tiles(300, 4, 3), epochs=6, lr=2e-3, batch=16)


if __name__ == "__main__":
    main()
