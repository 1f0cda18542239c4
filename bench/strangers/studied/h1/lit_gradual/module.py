import lightning.pytorch as pl
import torch
from torch import nn


class BlockNet(pl.LightningModule):
    def __init__(self, n_in=2, width=32, n_blocks=2, n_out=3, lr=5e-3):
        super().__init__()
        self.save_hyperparameters()
        sizes = [n_in] + [width] * n_blocks
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(a, b), nn.ReLU()) for a, b in zip(sizes[:-1], sizes[1:]))
        self.classifier = nn.Linear(width, n_out)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.classifier(x)

    def training_step(self, batch, idx):
        x, y = batch
        return nn.functional.cross_entropy(self(x), y)

    def validation_step(self, batch, idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", nn.functional.cross_entropy(logits, y))
        self.log("val_acc", (logits.argmax(1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
