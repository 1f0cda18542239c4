"""Convolutional VAE on synthetic 16x16 'aerial' tiles, Lightning."""
import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_tiles(n, seed):
    g = torch.Generator().manual_seed(seed)
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, 16), torch.linspace(-1, 1, 16), indexing="ij")
    cx, cy = torch.rand(2, n, 1, 1, generator=g) * 1.4 - 0.7
    r = torch.rand(n, 1, 1, generator=g) * 0.4 + 0.2
    field = ((xx - cx) ** 2 + (yy - cy) ** 2 < r ** 2).float()
    return field.unsqueeze(1)


class TileData(L.LightningDataModule):
    def __init__(self, batch_size=64):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        self.train_set = TensorDataset(make_tiles(512, 0))
        self.val_set = TensorDataset(make_tiles(128, 1))

    def train_dataloader(self):
        return DataLoader(self.train_set, self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, self.batch_size)


class TileVAE(L.LightningModule):
    def __init__(self, latent=8, lr=2e-3, kl_weight=0.5, warmup_steps=20):
        super().__init__()
        self.save_hyperparameters()
        # encoder and decoder run at different speeds, so we drive the optimizers ourselves
        self.automatic_optimization = False
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 4, 2, 1), nn.ReLU(),
            nn.Conv2d(16, 32, 4, 2, 1), nn.ReLU(),
            nn.Flatten(), nn.Linear(32 * 16, 2 * latent),
        )
        self.decoder = nn.Sequential(
            nn.Linear(latent, 32 * 16), nn.Unflatten(1, (32, 4, 4)), nn.ReLU(),
            nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ReLU(),
            nn.ConvTranspose2d(16, 1, 4, 2, 1),
        )

    def elbo(self, x, sample=True):
        mu, logvar = self.encoder(x).chunk(2, dim=1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if sample else mu
        rec = F.binary_cross_entropy_with_logits(self.decoder(z), x, reduction="none").sum((1, 2, 3)).mean()
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
        return rec, kl

    def training_step(self, batch, batch_idx):
        (x,) = batch
        opt_enc, opt_dec = self.optimizers()
        rec, kl = self.elbo(x)
        beta = self.hparams.kl_weight * min(1.0, (self.global_step + 1) / self.hparams.warmup_steps)
        loss = rec + beta * kl

        opt_enc.zero_grad()
        opt_dec.zero_grad()
        self.clip_gradients(opt_enc, gradient_clip_val=5.0, gradient_clip_algorithm="norm")
        opt_enc.step()
        opt_dec.step()

        self.log_dict({"train/rec": rec, "train/kl": kl, "train/beta": beta}, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        (x,) = batch
        rec, kl = self.elbo(x, sample=False)
        self.log("val/elbo", rec + kl, prog_bar=True)

    def configure_optimizers(self):
        enc = torch.optim.Adam(self.encoder.parameters(), lr=self.hparams.lr)
        dec = torch.optim.Adam(self.decoder.parameters(), lr=self.hparams.lr * 0.5)
        return [enc, dec]


if __name__ == "__main__":
    L.seed_everything(7, workers=True)
    trainer = L.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    model, data = TileVAE(), TileData()
    trainer.fit(model, datamodule=data)
    print({k: round(float(v), 3) for k, v in trainer.callback_metrics.items()})
