import json

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from leafnet.data import get_splits
from leafnet.layers import build_model

LOSSES = {
    "categorical_crossentropy": F.cross_entropy,
    "mse": F.mse_loss,
}


def evaluate(model, loader, loss_fn):
    model.eval()
    total, hits, n = 0.0, 0, 0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            total += loss_fn(out, y, reduction="sum").item()
            hits += (out.argmax(-1) == y).sum().item()
            n += len(y)
    return total / n, hits / n


def main():
    with open("config.json") as fh:
        cfg = json.load(fh)
    torch.manual_seed(0)
    train, val = get_splits(cfg["data"])
    tcfg = cfg["train"]
    train_dl = DataLoader(train, batch_size=tcfg["batch_size"], shuffle=True)
    val_dl = DataLoader(val, batch_size=256)

    model = build_model(cfg["model"], cfg["data"]["size"], cfg["data"]["n_classes"])
    loss_fn = LOSSES[tcfg["loss"]]
    opt = torch.optim.Adam(model.parameters(), lr=tcfg["lr"])

    for epoch in range(tcfg["epochs"]):
        model.train()
        running = 0.0
        for x, y in train_dl:
            opt.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            opt.step()
            running += loss.item() * len(y)
        val_loss, val_acc = evaluate(model, val_dl, loss_fn)
        print(f"Epoch {epoch + 1}/{tcfg['epochs']} - loss: {running / len(train):.4f} "
              f"- val_loss: {val_loss:.4f} - val_accuracy: {val_acc:.3f}")


if __name__ == "__main__":
    main()
