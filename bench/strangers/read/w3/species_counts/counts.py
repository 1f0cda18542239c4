import math

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, ACCUM = 8, 4


def survey(n, seed):
    """Counts per plot: Poisson with a rate that depends on five habitat variables."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 5, generator=g)
    log_rate = 0.8 + 0.5 * x[:, 0] - 0.4 * x[:, 1] ** 2 + 0.3 * x[:, 2] * x[:, 3]
    return TensorDataset(x, torch.poisson(log_rate.exp(), generator=g).unsqueeze(1))


class RateNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1))

    def forward(self, x):
        return self.net(x)


def main():
    set_seed(18)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=ACCUM)
    train_dl = DataLoader(survey(1500, 0), batch_size=16, shuffle=True)
    val_dl = DataLoader(survey(500, 1), batch_size=128)
    model = RateNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    updates = EPOCHS * math.ceil(len(train_dl) / ACCUM)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda u: min((u + 1) / 10, 0.52 + 0.48 * math.cos(math.pi * min(u / updates, 1.0)))
    )
    model, optimizer, train_dl, val_dl, scheduler = accelerator.prepare(model, optimizer, train_dl, val_dl, scheduler)
    criterion = nn.PoissonNLLLoss(log_input=True)

    for epoch in range(EPOCHS):
        model.train()
        for x, count in train_dl:
            with accelerator.accumulate(model):
                accelerator.backward(criterion(model(x), count))
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 5.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        model.eval()
        dev = torch.zeros((), dtype=torch.float64)
        n = 0
        for x, count in val_dl:
            with torch.no_grad():
                nll = nn.functional.poisson_nll_loss(model(x), count, reduction="none")
            nll = accelerator.gather_for_metrics(nll)
            dev += nll.sum().double().cpu()
            n += len(nll)
        accelerator.print(f"epoch {epoch} val nll {dev.item() / n:.4f} lr {scheduler.get_last_lr()[0]:.2e}")


if __name__ == "__main__":
    main()
