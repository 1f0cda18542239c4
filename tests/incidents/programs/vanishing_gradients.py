"""Ten sigmoid layers: what reaches the first one is a millionth of what reaches the last."""

from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from training import digits, minibatches, mlp, seed, write_csv


def make(folder: Path) -> None:
    seed(49)
    data = digits()
    model = mlp(64, *[32] * 9, 10, activation=nn.Sigmoid)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    layers = [i for i, layer in enumerate(model) if isinstance(layer, nn.Linear)]
    rows, step = [], 0
    for epoch in range(20):
        for batch in minibatches(len(data.x), 40):
            loss = functional.cross_entropy(model(data.x[batch]), data.y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 10 == 0:
                norms = {
                    f"grad_norm/layers.{n}.weight": f"{model[i].weight.grad.norm():.4e}"
                    for n, i in enumerate(layers)
                }
                rows.append({"epoch": epoch, "step": step, "train_loss": f"{loss:.5f}", **norms})
    write_csv(folder / "gradients.csv", rows)
    (folder / "config.yaml").write_text(
        "model:\n  layers: 10\n  width: 32\n  activation: sigmoid\n"
        "optimizer:\n  name: sgd\n  lr: 0.05\nbatch_size: 40\nepochs: 20\n"
    )
