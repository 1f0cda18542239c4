import json

import torch
import torch.nn.functional as F

from ecg.data import loaders, synth
from ecg.model import ECGNet
from ecg.monitor import GradientAlignment

CFG = dict(lr=2e-3, batch_size=64, epochs=6, clip=1.0, seed=0)


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


def main():
    torch.manual_seed(CFG["seed"])
    train_loader, test_loader = loaders(CFG["batch_size"])
    model = ECGNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=CFG["lr"])
    align = GradientAlignment(model, synth(64, 100), synth(64, 101))

    log = []
    for epoch in range(CFG["epochs"]):
        model.train()
        for step, (x, y) in enumerate(train_loader):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            gnorm = torch.nn.utils.clip_grad_norm_(model.parameters(), CFG["clip"])
            cos = align.measure()
            optimizer.step()
            log.append({"loss": loss.item(), "gnorm": gnorm.item(), "align": cos})
        acc = evaluate(model, test_loader)
        mean = sum(r["loss"] for r in log[-len(train_loader):]) / len(train_loader)
        print(f"epoch {epoch} loss {mean:.4f} align {cos:.3f} test acc {acc:.3f}")

    with open("/tmp/ecg_log.json", "w") as f:
        json.dump(log, f)


if __name__ == "__main__":
    main()
