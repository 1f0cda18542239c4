"""Training with bfloat16 working weights and float32 master weights kept by hand."""
import torch
from torch import nn


class MasterWeights:
    def __init__(self, model, make_optimizer):
        self.work = [p for p in model.parameters() if p.requires_grad]
        self.master = [p.detach().clone().float().requires_grad_(True) for p in self.work]
        self.optimizer = make_optimizer(self.master)
        model.to(torch.bfloat16)
        self.push()

    @torch.no_grad()
    def push(self):
        for w, m in zip(self.work, self.master):
            w.copy_(m)

    def update(self):
        for w, m in zip(self.work, self.master):
            m.grad = None if w.grad is None else w.grad.float()
            w.grad = None
        nn.utils.clip_grad_norm_(self.master, 5.0)
        self.optimizer.step()
        self.push()


def surface(n, gen):
    x = torch.rand(n, 3, generator=gen) * 2 - 1
    lift = torch.sin(3 * x[:, :1]) * (1 + 0.5 * x[:, 1:2]) + 0.3 * x[:, 2:] ** 2
    return x, lift


def main():
    torch.manual_seed(34)
    gen = torch.Generator().manual_seed(34)
    (x, y), (xv, yv) = surface(2000, gen), surface(400, gen)
    mu, sd = y.mean(), y.std()
    model = nn.Sequential(nn.Linear(3, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))
    weights = MasterWeights(model, lambda ps: torch.optim.AdamW(ps, lr=3e-3, weight_decay=1e-4))
    for epoch in range(12):
        model.train()
        for idx in torch.randperm(len(x)).split(50):
            pred = model(x[idx].bfloat16()).float()
            loss = nn.functional.mse_loss(pred, (y[idx] - mu) / sd)
            loss.backward()
            weights.update()
        model.eval()
        with torch.no_grad():
            err = (model(xv.bfloat16()).float() * sd + mu - yv).abs().mean()
        print(f"epoch {epoch} loss {loss.item():.5f} mae {err.item():.4f}")
    torch.save([m.detach() for m in weights.master], "master.pt")


if __name__ == "__main__":
    main()
