import json
import pathlib

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from models import DigitsWithSideTask
from monitor import GradientBalance

cfg = json.loads(pathlib.Path(__file__).with_name("settings.json").read_text())


def get_data():
    X, y = load_digits(return_X_y=True)
    X = (X / 16.0).astype("float32")
    return [torch.as_tensor(a) for a in train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)]


def objectives(model, xb, yb):
    logits, ink = model(xb)
    return {
        "digit": F.cross_entropy(logits, yb),
        "ink": cfg["ink_weight"] * F.mse_loss(ink, xb.mean(1)),
    }


def main():
    torch.manual_seed(cfg["seed"])
    x_tr, x_te, y_tr, y_te = get_data()
    model = DigitsWithSideTask(cfg["width"])
    opt = torch.optim.SGD(model.parameters(), lr=cfg["lr"], momentum=0.9, nesterov=True)
    balance = GradientBalance(model.stem.parameters(), every=cfg["log_every"])
    step = 0
    for epoch in range(cfg["epochs"]):
        for idx in torch.randperm(len(x_tr)).split(cfg["batch"]):
            parts = objectives(model, x_tr[idx], y_tr[idx])
            balance.maybe_log(step, parts)
            opt.zero_grad()
            sum(parts.values()).backward()
            opt.step()
            step += 1
        with torch.no_grad():
            acc = (model(x_te)[0].argmax(1) == y_te).float().mean().item()
        print(f"epoch {epoch} step {step} test accuracy {acc:.4f}")


if __name__ == "__main__":
    main()
