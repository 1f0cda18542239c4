import torch
import torch.nn.functional as F
from torch import nn

from loss_scale import DynamicLossScale, all_finite

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def make_data(seed=0):
    key = torch.Generator().manual_seed(seed)
    x = torch.randn(2000, 12, generator=key)
    w1 = torch.randn(12, 6, generator=key)
    y = (torch.tanh(x @ w1 / 3)).sum(1) + 0.1 * torch.randn(2000, generator=key)
    return x.to(DEVICE), (y / y.std()).to(DEVICE)


def init_params(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(12, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1)).to(DEVICE)


def loss_fn(net, batch):
    x, y = batch
    with torch.autocast(DEVICE, dtype=torch.float16):
        pred = net(x).squeeze(-1)
    return F.mse_loss(pred.float(), y)


def update(net, opt, loss_scale, batch):
    params = list(net.parameters())
    loss = loss_fn(net, batch)
    grads = torch.autograd.grad(loss_scale.scale(loss), params)
    grads = loss_scale.unscale(grads)
    finite = all_finite(grads)
    loss_scale.adjust(finite)
    if finite:
        for p, g in zip(params, grads):
            p.grad = g
        opt.step()
    return loss.item(), loss_scale, finite


def main():
    x, y = make_data()
    net = init_params()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    loss_scale = DynamicLossScale()
    key = torch.Generator().manual_seed(1)
    for epoch in range(6):
        taken, total = 0, 0.0
        batches = torch.randperm(1600, generator=key).split(64)
        for idx in batches:
            loss, loss_scale, ok = update(net, opt, loss_scale, (x[idx], y[idx]))
            taken += ok
            total += loss
        with torch.no_grad():
            test = F.mse_loss(net(x[1600:]).squeeze(-1), y[1600:]).item()
        print(f"epoch {epoch} train {total / len(batches):.4f} test {test:.4f} "
              f"updates {taken}/{len(batches)} scale {loss_scale.value:.0f}")


if __name__ == "__main__":
    main()
