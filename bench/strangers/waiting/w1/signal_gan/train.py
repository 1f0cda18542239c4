import math

import torch
import torch.nn.functional as F

from models import Generator, GlobalD, PatchD

Z, LENGTH, BATCH, STEPS = 12, 64, 64, 300


def real_batch(n):
    t = torch.linspace(0, 1, LENGTH)
    f = torch.randint(2, 5, (n, 1)).float()
    x = torch.sin(2 * math.pi * f * t + 6.28 * torch.rand(n, 1)) * torch.exp(-2 * t)
    return 0.9 * x.unsqueeze(1)


def set_requires_grad(nets, flag):
    if not isinstance(nets, (list, tuple)):
        nets = [nets]
    for net in nets:
        for p in net.parameters():
            p.requires_grad = flag


def hinge_d(real, fake):
    return F.relu(1 - real).mean() + F.relu(1 + fake).mean()


class SignalGAN:
    def __init__(self, lambda_patch=0.5):
        self.G, self.D, self.P = Generator(Z, LENGTH), GlobalD(LENGTH), PatchD()
        self.lambda_patch = lambda_patch
        self.opt_G = torch.optim.Adam(self.G.parameters(), lr=2e-4, betas=(0.0, 0.9))
        self.opt_D = torch.optim.Adam([*self.D.parameters(), *self.P.parameters()], lr=4e-4, betas=(0.0, 0.9))

    def optimize(self, real):
        z = torch.randn(real.size(0), Z)
        fake = self.G(z)

        # G: no need for gradients in the discriminators
        set_requires_grad([self.D, self.P], False)
        self.opt_G.zero_grad()
        loss_G = -self.D(fake).mean() - self.lambda_patch * self.P(fake).mean()
        loss_G.backward()
        self.opt_G.step()

        # D
        set_requires_grad(self.D, True)
        self.opt_D.zero_grad()
        fake = fake.detach()
        loss_global = hinge_d(self.D(real), self.D(fake))
        loss_patch = hinge_d(self.P(real), self.P(fake))
        (loss_global + self.lambda_patch * loss_patch).backward()
        self.opt_D.step()
        return {"G": loss_G.item(), "D_global": loss_global.item(), "D_patch": loss_patch.item()}


if __name__ == "__main__":
    torch.manual_seed(0)
    gan = SignalGAN()
    for step in range(STEPS + 1):
        stats = gan.optimize(real_batch(BATCH))
        if step % 50 == 0:
            print(step, {k: round(v, 3) for k, v in stats.items()})
    gan.G.eval()
    with torch.no_grad():
        s = gan.G(torch.randn(256, Z))
    print("sample std %.3f, decay ratio %.3f" % (s.std(), s[..., -16:].std() / s[..., :16].std()))
