import torch
import yaml
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from corpus import reviews
from model import StarClassifier


def run_epoch(model, loader, criterion, optimizer, accumulate, max_norm):
    model.train()
    total = 0.0
    optimizer.zero_grad()
    for i, (ids, stars) in enumerate(loader):
        loss = criterion(model(ids), stars)
        (loss / accumulate).backward()
        if (i + 1) % accumulate == 0:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            optimizer.zero_grad()
        total += loss.item()
    return total / len(loader)


@torch.inference_mode()
def evaluate(model, loader):
    model.eval()
    correct = sum((model(ids).argmax(-1) == stars).sum().item() for ids, stars in loader)
    return correct / len(loader.dataset)


def main():
    with open("config.yaml") as fh:
        cfg = yaml.safe_load(fh)
    torch.manual_seed(cfg["seed"])
    d = cfg["data"]
    train = TensorDataset(*reviews(d["n_train"], d["vocab"], d["max_len"], seed=0))
    valid = TensorDataset(*reviews(d["n_valid"], d["vocab"], d["max_len"], seed=1))
    train_loader = DataLoader(train, shuffle=True, **cfg["loader"])
    valid_loader = DataLoader(valid, batch_size=240)

    model = StarClassifier(d["vocab"], **cfg["model"])
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg["optim"]["lr"])
    criterion = nn.CrossEntropyLoss()
    for epoch in range(cfg["epochs"]):
        loss = run_epoch(model, train_loader, criterion, optimizer,
                         cfg["optim"]["accumulate"], cfg["optim"]["max_norm"])
        print(f"epoch {epoch} | loss {loss:.4f} | valid acc {evaluate(model, valid_loader):.3f}")


if __name__ == "__main__":
    main()
