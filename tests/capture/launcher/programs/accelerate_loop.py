"""Accelerate with gradient accumulation and clipping."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(2)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    x = torch.randn(1024, 16)
    y = (x[:, :3].sum(1) > 0).long() + (x[:, 3] > 0).long()
    model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 20))
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    for epoch in range(8):
        model.train()
        for batch_x, batch_y in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(batch_x), batch_y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        accelerator.print(f"epoch {epoch} loss {loss.item()!r}")


if __name__ == "__main__":
    main()
