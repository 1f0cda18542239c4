import copy
import logging
import os
import tempfile

import torch
import torch.nn.functional as F

from houses import market
from lora import load_adapter, save_adapter, wrap_linears
from model import mlp

logging.basicConfig(level=logging.INFO, format="[%(levelname)s] %(message)s")
log = logging.getLogger("pipeline")


def fit(net, x, y, epochs, lr):
    opt = torch.optim.Adam((p for p in net.parameters() if p.requires_grad), lr=lr)
    for ep in range(epochs):
        net.train()
        total = 0.0
        for b in torch.randperm(len(x)).split(64):
            loss = F.mse_loss(net(x[b]).squeeze(-1), y[b])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(b)
        if ep % 5 == 4:
            log.info("epoch %d mse %.4f", ep + 1, total / len(x))
    return net


@torch.no_grad()
def rmse(net, x, y):
    net.eval()
    return F.mse_loss(net(x).squeeze(-1), y).sqrt().item()


def main():
    torch.manual_seed(0)
    base = fit(mlp(), *market(2000, 0), epochs=15, lr=3e-3)
    log.info("base model, old market %.3f", rmse(base, *market(500, 1)))

    new_train, new_test = market(1000, 2, boom=1.0), market(500, 3, boom=1.0)
    tuned = fit(wrap_linears(copy.deepcopy(base), rank=8), *new_train, epochs=15, lr=5e-3)
    path = os.path.join(tempfile.mkdtemp(), "adapter.pt")
    save_adapter(tuned, path)

    served = load_adapter(wrap_linears(copy.deepcopy(base), rank=8), path)
    log.info("new market rmse: base %.3f, tuned in memory %.3f, served from %s %.3f",
             rmse(base, *new_test), rmse(tuned, *new_test), os.path.basename(path), rmse(served, *new_test))


if __name__ == "__main__":
    main()
