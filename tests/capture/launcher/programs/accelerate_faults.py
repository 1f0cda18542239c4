"""Accelerate loops with a fault each; the first argument chooses."""

import sys

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    fault = sys.argv[1]
    torch.manual_seed(2)
    accelerator = Accelerator(cpu=True)
    x = torch.randn(1024, 16)
    y = (x[:, :3].sum(1) > 0).long() + (x[:, 3] > 0).long()
    layers = [nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 3)]
    if fault == "softmax":
        layers.append(nn.Softmax(dim=1))
    model = nn.Sequential(*layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(8):
        for batch_x, batch_y in loader:
            loss = nn.functional.cross_entropy(model(batch_x), batch_y)
            if fault != "no-zero-grad":
                optimizer.zero_grad()
            accelerator.backward(loss)
            if fault != "no-step":
                optimizer.step()
        accelerator.print(f"epoch {epoch} loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
