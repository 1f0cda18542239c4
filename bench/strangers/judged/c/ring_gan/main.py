"""WGAN-GP on a ring of Gaussians: Lightning with manual optimisation, several critic steps per generator step."""
import logging
import math
import warnings

import lightning.pytorch as pl
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def ring(n, seed, modes=6):
    g = torch.Generator().manual_seed(seed)
    ang = torch.randint(0, modes, (n,), generator=g) * (2 * math.pi / modes)
    return torch.stack([ang.cos(), ang.sin()], 1) * 1.5 + 0.08 * torch.randn(n, 2, generator=g)


def mlp(a, b, h=48):
    return nn.Sequential(nn.Linear(a, h), nn.LeakyReLU(0.2), nn.Linear(h, h), nn.LeakyReLU(0.2), nn.Linear(h, b))


class RingGAN(pl.LightningModule):
    def __init__(self, z=4, n_critic=4, gp=5.0, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.gen, self.critic = mlp(z, 2), mlp(2, 1)

    def configure_optimizers(self):
        mk = lambda m: torch.optim.Adam(m.parameters(), lr=self.hparams.lr, betas=(0.0, 0.9))
        return [mk(self.gen), mk(self.critic)]

    def noise(self, n):
        return torch.randn(n, self.hparams.z, device=self.device)

    def gradient_penalty(self, real, fake):
        t = torch.rand(len(real), 1, device=self.device)
        mid = (t * real + (1 - t) * fake).requires_grad_()
        (g,) = torch.autograd.grad(self.critic(mid).sum(), mid, create_graph=True)
        return ((g.norm(dim=1) - 1) ** 2).mean()

    def training_step(self, batch, batch_idx):
        (real,) = batch
        g_opt, c_opt = self.optimizers()

        self.toggle_optimizer(c_opt)
        with torch.no_grad():
            fake = self.gen(self.noise(len(real)))
        gap = self.critic(fake).mean() - self.critic(real).mean()
        c_opt.zero_grad()
        self.manual_backward(gap + self.hparams.gp * self.gradient_penalty(real, fake))
        c_opt.step()
        self.untoggle_optimizer(c_opt)

        if (batch_idx + 1) % self.hparams.n_critic == 0:
            self.toggle_optimizer(g_opt)
            g_loss = -self.critic(self.gen(self.noise(len(real)))).mean()
            g_opt.zero_grad()
            self.manual_backward(g_loss)
            g_opt.step()
            self.untoggle_optimizer(g_opt)
        self.log("wasserstein", -gap.detach(), on_epoch=True, on_step=False)

    def validation_step(self, batch, _):
        (real,) = batch
        fake = self.gen(self.noise(len(real)))
        energy = 2 * torch.cdist(real, fake).mean() - torch.cdist(real, real).mean() - torch.cdist(fake, fake).mean()
        self.log("energy_distance", energy)


if __name__ == "__main__":
    pl.seed_everything(27)
    trainer = pl.Trainer(max_epochs=8, accelerator="cpu", logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False)
    gan = RingGAN()
    trainer.fit(gan, DataLoader(TensorDataset(ring(2048, 0)), 64, shuffle=True), DataLoader(TensorDataset(ring(512, 1)), 512))
    print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
