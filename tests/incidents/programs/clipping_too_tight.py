"""max_norm=0.001 under SGD: every step is clipped to nothing and the loss hardly moves."""

from pathlib import Path

import torch
from torch.nn import functional
from training import digits, minibatches, mlp, seed, write_jsonl


def make(folder: Path) -> None:
    seed(64)
    data, model = digits(), mlp(64, 48, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    rows, step = [], 0
    for epoch in range(20):
        for batch in minibatches(len(data.x), 40):
            loss = functional.cross_entropy(model(data.x[batch]), data.y[batch])
            optimizer.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
            optimizer.step()
            step += 1
            if step % 5 == 0:
                rows.append(
                    {
                        "step": step,
                        "epoch": epoch,
                        "loss": round(loss.item(), 5),
                        "grad_norm": round(norm.item(), 5),
                        "lr": 0.05,
                    }
                )
    write_jsonl(folder / "metrics.jsonl", rows)
    (folder / "config.json").write_text(
        '{"optimizer": "sgd", "lr": 0.05, "max_grad_norm": 0.001, "batch_size": 40, "epochs": 20}\n'
    )
