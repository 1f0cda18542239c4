import copy
import math

import torch
import torch.nn as nn
from sklearn.datasets import make_friedman1
from torch.utils.data import DataLoader, TensorDataset

from settings import settings


class EMA:
    def __init__(self, model, decay=0.98):
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for e, p in zip(self.model.state_dict().values(), model.state_dict().values()):
            e.lerp_(p, 1 - self.decay) if e.dtype.is_floating_point else e.copy_(p)


def data(n, seed):
    X, y = make_friedman1(n, n_features=10, noise=0.5, random_state=seed)
    return TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor((y - 14.4) / 5.0, dtype=torch.float32))


def main(cfg):
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    use_amp = cfg.amp and device == "cuda"
    net = nn.Sequential(nn.Linear(10, 128), nn.GELU(), nn.Dropout(cfg.dropout),
                        nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 1)).to(device)
    ema = EMA(net)
    train = DataLoader(data(4096, 0), cfg.batch_size // cfg.accumulate, shuffle=True, drop_last=True)
    test = data(1000, 1).tensors
    opt = torch.optim.AdamW(net.parameters(), lr=cfg.lr)
    scaler = torch.amp.GradScaler(device, enabled=use_amp)
    per_epoch = math.ceil(len(train) / cfg.accumulate)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=cfg.lr, epochs=cfg.epochs, steps_per_epoch=per_epoch)

    for epoch in range(cfg.epochs):
        net.train()
        opt.zero_grad()
        for it, (x, y) in enumerate(train, start=1):
            x, y = x.to(device), y.to(device)
            with torch.autocast(device, enabled=use_amp):
                loss = nn.functional.mse_loss(net(x).squeeze(1), y)
            scaler.scale(loss / cfg.accumulate).backward()
            if it % cfg.accumulate and it != len(train):
                continue
            scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(net.parameters(), cfg.clip_norm)
            scaler.step(opt)
            scaler.update()
            opt.zero_grad()
            sched.step()
            ema.update(net)
        with torch.no_grad():
            x, y = (t.to(device) for t in test)
            mse = nn.functional.mse_loss(ema.model(x).squeeze(1), y).item()
        print(f"epoch {epoch} ema test mse {mse:.4f} lr {sched.get_last_lr()[0]:.1e}")


if __name__ == "__main__":
    main(settings())
