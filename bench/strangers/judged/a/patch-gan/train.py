"""Hinge GAN with spectral norm in Lightning. Two optimizers, hence manual optimization; D is trained twice as often."""
import lightning as L
import torch
import torch.nn as nn
from torch.nn.utils.parametrizations import spectral_norm as sn
from torch.utils.data import DataLoader, Dataset


class Stripes(Dataset):
    def __init__(self, n=512, seed=0):
        g = torch.Generator().manual_seed(seed)
        ph, fr = torch.rand(2, n, 1, 1, generator=g)
        ax = torch.linspace(0, 6.28, 8)
        self.x = torch.sin((1 + fr) * ax.view(1, 1, 8) + 6.28 * ph).expand(n, 8, 8).unsqueeze(1).contiguous()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i]


class StripeGAN(L.LightningModule):
    def __init__(self, z=8, ch=16, lr_g=1e-3, lr_d=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.G = nn.Sequential(
            nn.Linear(z, ch * 2 * 4), nn.Unflatten(1, (ch * 2, 2, 2)), nn.BatchNorm2d(ch * 2), nn.ReLU(),
            nn.ConvTranspose2d(ch * 2, ch, 4, 2, 1), nn.BatchNorm2d(ch), nn.ReLU(),
            nn.ConvTranspose2d(ch, 1, 4, 2, 1), nn.Tanh())
        self.D = nn.Sequential(
            sn(nn.Conv2d(1, ch, 4, 2, 1)), nn.LeakyReLU(0.2),
            sn(nn.Conv2d(ch, ch * 2, 4, 2, 1)), nn.LeakyReLU(0.2), nn.Flatten(), sn(nn.Linear(ch * 2 * 4, 1)))
        self.apply(self._init)

    @staticmethod
    def _init(m):
        if isinstance(m, nn.ConvTranspose2d):
            nn.init.normal_(m.weight, 0.0, 0.05)
        elif isinstance(m, nn.BatchNorm2d):
            nn.init.normal_(m.weight, 1.0, 0.02)
            nn.init.zeros_(m.bias)

    def noise(self, n):
        return torch.randn(n, self.hparams.z, device=self.device)

    def training_step(self, real, batch_idx):
        opt_g, opt_d = self.optimizers()

        self.toggle_optimizer(opt_d)
        with torch.no_grad():
            fake = self.G(self.noise(len(real)))
        d_loss = (1 - self.D(real)).relu().mean() + (1 + self.D(fake)).relu().mean()
        opt_d.zero_grad()
        self.manual_backward(d_loss)
        opt_d.step()
        self.untoggle_optimizer(opt_d)
        self.log("d", d_loss)

        if batch_idx % 2 == 1:
            self.toggle_optimizer(opt_g)
            g_loss = -self.D(self.G(self.noise(len(real)))).mean()
            opt_g.zero_grad()
            self.manual_backward(g_loss)
            opt_g.step()
            self.untoggle_optimizer(opt_g)
            self.log("g", g_loss)

    def on_train_epoch_end(self):
        for s in self.lr_schedulers():
            s.step()
        self.G.eval()
        with torch.no_grad():
            s = self.G(self.noise(256))
        self.G.train()
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch}: d {m['d']:.3f} g {m['g']:.3f}, spread along stripes {s.std(dim=2).mean():.3f}")

    def configure_optimizers(self):
        h = self.hparams
        g = torch.optim.Adam(self.G.parameters(), h.lr_g, betas=(0.0, 0.9))
        d = torch.optim.Adam(self.D.parameters(), h.lr_d, betas=(0.0, 0.9))
        return [g, d], [torch.optim.lr_scheduler.ExponentialLR(o, 0.95) for o in (g, d)]


if __name__ == "__main__":
    L.seed_everything(19)
    L.Trainer(max_epochs=6, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
              enable_model_summary=False).fit(StripeGAN(), DataLoader(Stripes(), 32, shuffle=True, drop_last=True))
