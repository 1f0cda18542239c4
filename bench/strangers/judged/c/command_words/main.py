"""Keyword spotting on synthetic tones with Lightning."""
import math
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
SR = 2000


def synth(n, n_words, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, n_words, (n,), generator=g)
    t = torch.arange(SR // 2) / SR
    f0 = 120.0 + 90.0 * y.float()
    chirp = 60.0 * torch.rand(n, generator=g)
    phase = 2 * math.pi * (f0[:, None] * t + 0.5 * chirp[:, None] * t ** 2)
    wave = torch.sin(phase) + 0.8 * torch.randn(n, t.numel(), generator=g)
    return TensorDataset(wave, y)


class Words(L.LightningDataModule):
    def __init__(self, n_words, batch_size=32):
        super().__init__()
        self.n_words, self.batch_size = n_words, batch_size

    def setup(self, stage=None):
        self.fit_set = synth(480, self.n_words, seed=1)
        self.dev_set = synth(160, self.n_words, seed=2)

    def train_dataloader(self):
        return DataLoader(self.fit_set, self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.dev_set, self.batch_size)


class LogSpec(nn.Module):
    def __init__(self, n_fft=128, hop=64):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))

    def forward(self, wave):
        z = torch.stft(wave, self.n_fft, self.hop, window=self.window, return_complex=True)
        return torch.log1p(z.abs())


class WordSpotter(L.LightningModule):
    def __init__(self, n_words: int = 6, width: int = 12, lr: float = 3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.frontend = LogSpec()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.MaxPool2d(2),
        )

    def forward(self, wave):
        h = self.trunk(self.frontend(wave).unsqueeze(1)).flatten(1)
        # number of features follows from n_fft / hop / clip length
        to_words = nn.Linear(h.size(1), self.hparams.n_words, device=h.device)
        return to_words(h)

    def training_step(self, batch, _):
        wave, y = batch
        loss = F.cross_entropy(self(wave), y)
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, _):
        wave, y = batch
        logits = self(wave)
        self.log("val_loss", F.cross_entropy(logits, y))
        self.log("val_acc", (logits.argmax(-1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


if __name__ == "__main__":
    L.seed_everything(5)
    dm = Words(n_words=6)
    trainer = L.Trainer(max_epochs=4, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    spotter = WordSpotter(n_words=6)
    trainer.fit(spotter, datamodule=dm)
    print({k: round(float(v), 4) for k, v in trainer.callback_metrics.items()})
