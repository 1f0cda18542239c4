import torch
from torch import nn

from reactor import measurements
from scaling import UnitAware


def core(n_in, width=32):
    # batches of one reading arrive from the plant, hence GroupNorm
    return nn.Sequential(nn.Linear(n_in, width), nn.GroupNorm(4, width), nn.SiLU(),
                         nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))


def main():
    torch.manual_seed(0)
    x, y = measurements(1000, 1)
    xv, yv = measurements(300, 2)
    model = UnitAware(core(4), 4).adapt(x, y)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    hold = 20
    for epoch in range(6):
        model.train()
        optimizer.zero_grad()
        total = 0.0
        for k, i in enumerate(torch.randperm(len(x)).tolist(), start=1):
            loss = model.loss(x[i:i + 1], y[i:i + 1])
            (loss / hold).backward()
            total += loss.item()
            if k % hold == 0:
                optimizer.step()
                optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            err = (model(xv) - yv).abs().mean().item()
        print(f"epoch {epoch}  loss {total / len(x):.4f}  mean error {err / 1e3:.0f} kW of {yv.mean().item() / 1e3:.0f} kW")


if __name__ == "__main__":
    main()
