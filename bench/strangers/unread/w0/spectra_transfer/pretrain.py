import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BINS, CODE = 64, 16


def make_encoder():
    return nn.Sequential(nn.Linear(BINS, 64), nn.GELU(), nn.Linear(64, CODE))


def spectra(n, seed):
    g = torch.Generator().manual_seed(seed)
    grid = torch.linspace(0, 1, BINS)
    a, b = torch.rand(2, n, 1, generator=g)
    clean = torch.exp(-((grid - a) / 0.05) ** 2) + 0.6 * torch.exp(-((grid - b) / 0.1) ** 2)
    return clean + 0.05 * torch.randn(n, BINS, generator=g), torch.cat([a, b], 1)


class SpectraAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = make_encoder()
        self.decoder = nn.Sequential(nn.Linear(CODE, 64), nn.GELU(), nn.Linear(64, BINS))

    def forward(self, x):
        return self.decoder(self.encoder(x))


class Pretraining(L.LightningModule):
    def __init__(self, lr=3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = SpectraAutoencoder()

    def training_step(self, batch, _):
        (x,) = batch
        noisy = x + 0.1 * torch.randn_like(x)
        loss = nn.functional.mse_loss(self.net(noisy), x)
        self.log("rec", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def pretrain(path, epochs=6):
    loader = DataLoader(TensorDataset(spectra(2000, 1)[0]), 64, shuffle=True)
    trainer = L.Trainer(max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Pretraining(), loader)
    trainer.save_checkpoint(path)
    return trainer.callback_metrics["rec"].item()
