import logging
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class RingGAN(L.LightningModule):
    def __init__(self, latent=4, width=64, lr=1e-3, g_every=2):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.gen = nn.Sequential(nn.Linear(latent, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2))
        self.disc = nn.Sequential(
            nn.Linear(2, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, 1)
        )

    def sample(self, n):
        return self.gen(torch.randn(n, self.hparams.latent, device=self.device))

    def training_step(self, batch, batch_idx):
        (real,) = batch
        opt_g, opt_d = self.optimizers()

        fake = self.sample(len(real)).detach()
        d_loss = F.softplus(-self.disc(real)).mean() + F.softplus(self.disc(fake)).mean()
        opt_d.zero_grad()
        self.manual_backward(d_loss)
        opt_d.step()
        self.log("d_loss", d_loss, on_step=False, on_epoch=True)

        if batch_idx % self.hparams.g_every == 0:
            self.toggle_optimizer(opt_g)
            g_loss = F.softplus(-self.disc(self.sample(len(real)))).mean()
            opt_g.zero_grad()
            self.manual_backward(g_loss)
            opt_g.step()
            self.untoggle_optimizer(opt_g)
            self.log("g_loss", g_loss, on_step=False, on_epoch=True)

    def validation_step(self, batch, batch_idx):
        (real,) = batch
        fake_r, real_r = self.sample(len(real)).norm(dim=1), real.norm(dim=1)
        self.log("radius_gap", (fake_r.mean() - real_r.mean()).abs())
        self.log("spread_gap", (fake_r.std() - real_r.std()).abs())

    def on_train_epoch_end(self):
        if self.current_epoch % 4 == 3:
            print(self.current_epoch + 1, {k: round(v.item(), 3) for k, v in self.trainer.callback_metrics.items()})

    def configure_optimizers(self):
        betas = (0.5, 0.99)
        return (
            torch.optim.Adam(self.gen.parameters(), lr=self.hparams.lr, betas=betas),
            torch.optim.Adam(self.disc.parameters(), lr=self.hparams.lr, betas=betas),
        )


def ring(n, seed):
    g = torch.Generator().manual_seed(seed)
    a = 2 * torch.pi * torch.rand(n, generator=g)
    r = 1 + 0.05 * torch.randn(n, generator=g)
    return TensorDataset(torch.stack([r * a.cos(), r * a.sin()], 1))


if __name__ == "__main__":
    L.seed_everything(7, verbose=False)
    trainer = L.Trainer(max_epochs=24, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(RingGAN(), DataLoader(ring(2048, 0), batch_size=64, shuffle=True), DataLoader(ring(512, 1), batch_size=256))
