"""Anomaly detection on bearing vibration windows with a sparse auto-encoder (Lightning)."""
import logging
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore", ".*does not have many workers.*")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

WINDOW = 64


def synth_windows(n, faulty, gen):
    t = torch.arange(WINDOW) / WINDOW
    phase = torch.rand(n, 1, generator=gen) * 6.283
    amp = 0.8 + 0.4 * torch.rand(n, 1, generator=gen)
    x = amp * torch.sin(2 * torch.pi * 4 * t + phase)
    x = x + 0.05 * torch.randn(n, WINDOW, generator=gen)
    if faulty:
        x = x + 0.6 * torch.sin(2 * torch.pi * 17 * t + 2 * phase)
    return x


class BearingData(L.LightningDataModule):
    def __init__(self, batch_size=64, seed=0):
        super().__init__()
        self.batch_size, self.seed = batch_size, seed

    def setup(self, stage=None):
        gen = torch.Generator().manual_seed(self.seed)
        self.fit_set = TensorDataset(synth_windows(1024, False, gen))
        healthy, broken = synth_windows(128, False, gen), synth_windows(128, True, gen)
        flags = torch.cat([torch.zeros(128), torch.ones(128)])
        self.val_set = TensorDataset(torch.cat([healthy, broken]), flags)

    def train_dataloader(self):
        return DataLoader(self.fit_set, self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, 256)


class SparseAutoEncoder(L.LightningModule):
    def __init__(self, code=12, lr_enc=1e-3, lr_dec=2e-3, sparsity=1e-3):
        super().__init__()
        self.save_hyperparameters()
        # encoder and decoder get their own optimizer and their own learning rate,
        # the decoder is clipped harder than the encoder
        self.automatic_optimization = False
        self.enc = nn.Sequential(nn.Linear(WINDOW, 48), nn.ReLU(), nn.Linear(48, code))
        self.dec = nn.Sequential(nn.Linear(code, 48), nn.ReLU(), nn.Linear(48, WINDOW))

    def forward(self, x):
        z = self.enc(x)
        return self.dec(z), z

    def training_step(self, batch, batch_idx):
        opt_enc, opt_dec = self.optimizers()
        (x,) = batch
        recon, z = self(x)
        mse = F.mse_loss(recon, x)
        loss = mse + self.hparams.sparsity * z.abs().mean()

        opt_enc.zero_grad()
        opt_dec.zero_grad()
        self.clip_gradients(opt_enc, gradient_clip_val=5.0, gradient_clip_algorithm="norm")
        self.clip_gradients(opt_dec, gradient_clip_val=1.0, gradient_clip_algorithm="norm")
        opt_enc.step()
        opt_dec.step()

        self.log_dict({"train/loss": loss, "train/mse": mse}, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, batch_idx):
        x, flag = batch
        recon, _ = self(x)
        err = (recon - x).pow(2).mean(1)
        self.log("val/healthy", err[flag == 0].mean())
        self.log("val/broken", err[flag == 1].mean())

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch}: mse {m['train/mse']:.4f}")

    def configure_optimizers(self):
        return [
            torch.optim.Adam(self.enc.parameters(), lr=self.hparams.lr_enc),
            torch.optim.Adam(self.dec.parameters(), lr=self.hparams.lr_dec),
        ]


if __name__ == "__main__":
    L.seed_everything(11)
    trainer = L.Trainer(max_epochs=4, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(SparseAutoEncoder(), datamodule=BearingData())
    print({k: round(float(v), 4) for k, v in trainer.callback_metrics.items()})
