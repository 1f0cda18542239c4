import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
TAU, BATCH, DIM, SCALE = 0.07, 64, 32, 128.0


class Encoder(nn.Module):
    def __init__(self, d_in=64, width=128):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(d_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.g = nn.Linear(width, DIM)

    def forward(self, x):
        return F.normalize(self.g(self.f(x)), dim=-1, eps=1e-4)


def info_nce(a, b):
    sim = a @ b.t() / TAU
    e = torch.exp(sim)
    pos = e.diagonal()
    return -torch.log(pos / e.sum(1)).mean()


class MasterWeights:
    """Half-precision model, single-precision copy for the updates, fixed loss scale."""

    def __init__(self, model, lr):
        self.model = [p for p in model.parameters()]
        self.master = [p.detach().float().clone().requires_grad_() for p in self.model]
        self.opt = torch.optim.Adam(self.master, lr=lr)

    def backward_and_step(self, loss):
        for p in self.model:
            p.grad = None
        (loss.float() * SCALE).backward()
        for m, p in zip(self.master, self.model):
            m.grad = p.grad.float() / SCALE
        nn.utils.clip_grad_norm_(self.master, 1.0)
        self.opt.step()
        with torch.no_grad():
            for m, p in zip(self.master, self.model):
                p.copy_(m)


def views(n, gen):
    z = torch.randn(n, 8, generator=gen)
    mix = torch.randn(8, 64, generator=torch.Generator().manual_seed(123))
    base = torch.tanh(z @ mix / 3)
    return (base + 0.05 * torch.randn(n, 64, generator=gen) for _ in range(2))


@torch.no_grad()
def retrieval(enc, gen):
    enc.eval()
    a, b = (enc(v.half().to(dev)).float() for v in views(256, gen))
    return ((a @ b.t()).argmax(1) == torch.arange(256, device=dev)).float().mean().item()


def main():
    torch.manual_seed(0)
    enc = Encoder().to(dev).half()
    step = MasterWeights(enc, lr=1e-3)
    gen, test_gen = torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)
    for it in range(300):
        enc.train()
        a, b = views(BATCH, gen)
        za, zb = enc(a.half().to(dev)), enc(b.half().to(dev))
        loss = 0.5 * (info_nce(za, zb) + info_nce(zb, za))
        step.backward_and_step(loss)
        if it % 60 == 0:
            print(f"{it:4d} loss {loss.item():.4f} recall@1 {retrieval(enc, test_gen):.3f}")


if __name__ == "__main__":
    main()
