import argparse

import torch
import torch.nn.functional as F
import yaml

from net import SpectrumNet
from spectra import as_dataset, phase_loaders


@torch.no_grad()
def score(model, loader):
    model.eval()
    hits = total = 0
    for x, y in loader:
        hits += (model(x).argmax(1) == y).sum().item()
        total += y.numel()
    return hits / total


def run_phase(model, phase, fit, hold):
    optimiser = torch.optim.AdamW(model.parameters(), lr=phase["lr"], weight_decay=1e-4)
    for epoch in range(phase["epochs"]):
        model.train()
        running = 0.0
        for x, y in fit:
            optimiser.zero_grad()
            loss = F.cross_entropy(model(x), y, label_smoothing=phase["smoothing"])
            loss.backward()
            optimiser.step()
            running += loss.item() * len(y)
        if epoch % 4 == 3 or epoch == phase["epochs"] - 1:
            print(f"[{phase['name']}] epoch {epoch + 1:02d} "
                  f"loss {running / len(fit.dataset):.3f} holdout acc {score(model, hold):.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="config.yaml")
    args = parser.parse_args()
    with open(args.config) as fh:
        cfg = yaml.safe_load(fh)

    torch.manual_seed(cfg["seed"])
    dataset = as_dataset(cfg["data"], cfg["seed"])
    model = SpectrumNet(cfg["data"]["bins"], cfg["data"]["classes"])

    for k, phase in enumerate(cfg["phases"]):
        # a fresh random stream for each phase so the batches are not repeated
        fit, hold = phase_loaders(dataset, cfg["data"]["holdout"], cfg["batch_size"], cfg["seed"] + k)
        run_phase(model, phase, fit, hold)

    print(f"final holdout accuracy: {score(model, hold):.3f}")


if __name__ == "__main__":
    main()
