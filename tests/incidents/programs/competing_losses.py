"""A consistency term weighs so much that the network becomes constant and gives the classes up."""

from pathlib import Path

import torch
from torch.nn import functional
from training import digits, minibatches, mlp, seed, write_jsonl

WEIGHT = 40.0


def make(folder: Path) -> None:
    seed(53)
    data, model = digits(), mlp(64, 48, 10)
    pretraining = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(6):  # the classifier that the second term is added to
        for batch in minibatches(len(data.x), 30):
            loss = functional.cross_entropy(model(data.x[batch]), data.y[batch])
            pretraining.zero_grad()
            loss.backward()
            pretraining.step()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    rows, step = [], 0
    for epoch in range(25):
        for batch in minibatches(len(data.x), 30):
            logits = model(data.x[batch])
            shifted = model(data.x[batch] + 0.4 * torch.randn(30, 64))
            classes = functional.cross_entropy(logits, data.y[batch])
            consistency = functional.mse_loss(shifted, logits)
            loss = classes + WEIGHT * consistency
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 8 == 0:
                rows.append(
                    {
                        "step": step,
                        "epoch": epoch,
                        "loss": round(loss.item(), 4),
                        "loss_cls": round(classes.item(), 4),
                        "loss_consistency": round(consistency.item(), 5),
                    }
                )
    write_jsonl(folder / "log.jsonl", rows)
    (folder / "config.yaml").write_text(
        "init_from: runs/classifier/best.pt\nlr: 5e-4\nbatch_size: 30\n"
        "loss_weights:\n  cls: 1.0\n  consistency: 40.0\n"
    )
