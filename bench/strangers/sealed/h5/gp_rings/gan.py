"""WGAN-GP with mixed precision: two optimizers, one scaler, which is updated once per iteration."""
import torch

from nets import mlp, ring

DEV = "cuda" if torch.cuda.is_available() else "cpu"
DTYPE = torch.float16 if DEV == "cuda" else torch.bfloat16


class RingGAN:
    def __init__(self, lam=0.5, n_critic=2):
        self.G, self.D = mlp(2, 96, 96, 2).to(DEV), mlp(2, 96, 96, 1).to(DEV)
        self.opt_g = torch.optim.Adam(self.G.parameters(), lr=1e-3, betas=(0.5, 0.9))
        self.opt_d = torch.optim.Adam(self.D.parameters(), lr=1e-3, betas=(0.5, 0.9))
        self.scaler = torch.amp.GradScaler(DEV, init_scale=256.0)
        self.lam, self.n_critic, self.it = lam, n_critic, 0

    def sample(self, n):
        with torch.autocast(DEV, dtype=DTYPE):
            return self.G(torch.randn(n, 2, device=DEV)).float()

    def penalty(self, real, fake):
        mix = torch.rand(len(real), 1, device=DEV)
        x = (mix * real + (1 - mix) * fake).requires_grad_(True)
        out = self.D(x)
        (g,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        return ((g.square().sum(1) + 1e-12).sqrt() - 1).square().mean()

    def iteration(self, real):
        self.it += 1
        fake = self.sample(len(real)).detach()
        with torch.autocast(DEV, dtype=DTYPE):
            gap = self.D(fake).float().mean() - self.D(real).float().mean()
        loss_d = gap + self.lam * self.penalty(real, fake)
        self.opt_d.zero_grad()
        self.scaler.scale(loss_d).backward()
        self.scaler.step(self.opt_d)
        if self.it % self.n_critic == 0:
            self.D.requires_grad_(False)
            with torch.autocast(DEV, dtype=DTYPE):
                loss_g = -self.D(self.sample(len(real))).float().mean()
            self.opt_g.zero_grad()
            self.scaler.scale(loss_g).backward()
            self.scaler.step(self.opt_g)
            self.D.requires_grad_(True)
        self.scaler.update()
        return gap.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(0)
    model = RingGAN()
    for it in range(1, 901):
        gap = model.iteration(ring(128, gen).to(DEV))
        if it % 180 == 0:
            with torch.no_grad():
                r = model.sample(1000).norm(dim=1)
            print(f"it {it} critic gap {gap:.3f} radius {r.mean():.2f} +- {r.std():.2f}")
