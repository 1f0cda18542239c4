import torch
import torch.nn.functional as F
import yaml
from torch import nn

from ring import coverage, ring


def net(i, o, h):
    return nn.Sequential(nn.Linear(i, h), nn.LeakyReLU(0.2), nn.Linear(h, h), nn.LeakyReLU(0.2), nn.Linear(h, o))


class RingGAN:
    def __init__(self, cfg):
        self.cfg = cfg
        self.G, self.D = net(cfg["noise_dim"], 2, cfg["hidden"]), net(2, 1, cfg["hidden"])
        self.opt_g = torch.optim.Adam(self.G.parameters(), cfg["lr_g"], betas=tuple(cfg["betas"]))
        self.opt_d = torch.optim.Adam(self.D.parameters(), cfg["lr_d"], betas=tuple(cfg["betas"]))

    def fake(self, n):
        return self.G(torch.randn(n, self.cfg["noise_dim"]))

    def critic_step(self):
        real, fake = ring(self.cfg["batch"]), self.fake(self.cfg["batch"]).detach()
        loss = F.softplus(-self.D(real)).mean() + F.softplus(self.D(fake)).mean()
        self.opt_d.zero_grad()
        loss.backward()
        self.opt_d.step()
        return loss.item()

    def generator_step(self):
        loss = F.softplus(-self.D(self.fake(self.cfg["batch"]))).mean()
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()
        return loss.item()

    def fit(self):
        d_loss = float("nan")
        for it in range(1, self.cfg["iterations"] + 1):
            g_loss = self.generator_step()
            if it % self.cfg["n_critic"] == 0:
                d_loss = self.critic_step()
            if it % 250 == 0:
                with torch.no_grad():
                    modes, spread = coverage(self.fake(1000))
                print(f"iter {it} d {d_loss:.3f} g {g_loss:.3f} modes {modes}/8 spread {spread:.3f}")


def main():
    cfg = yaml.safe_load(open("config.yaml"))
    torch.manual_seed(cfg["seed"])
    gan = RingGAN(cfg)
    gan.fit()


if __name__ == "__main__":
    main()
