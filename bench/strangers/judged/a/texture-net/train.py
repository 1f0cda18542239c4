import argparse

import lightning.pytorch as pl
import torch
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset


def textures(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 4, (n,), generator=g)
    theta = y.float() * torch.pi / 4
    grid = torch.linspace(-3, 3, 16)
    a = grid.view(1, 16, 1) * theta.cos().view(-1, 1, 1) + grid.view(1, 1, 16) * theta.sin().view(-1, 1, 1)
    x = torch.sin(3 * a + 6.28 * torch.rand(n, 1, 1, generator=g)) + 0.8 * torch.randn(n, 16, 16, generator=g)
    return x.unsqueeze(1), y


class TextureNet(pl.LightningModule):
    def __init__(self, max_lr=0.1, weight_decay=5e-4):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Conv2d(1, 16, 5, padding=2, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 4),
        )

    def forward(self, x):
        return self.net(x)

    def _shared(self, batch, prefix):
        x, y = batch
        logits = self(x)
        loss = nn.functional.cross_entropy(logits, y)
        self.log(f"{prefix}_loss", loss, on_epoch=True, on_step=False)
        self.log(f"{prefix}_acc", (logits.argmax(1) == y).float().mean(), on_epoch=True, on_step=False)
        return loss

    def training_step(self, batch, _):
        return self._shared(batch, "train")

    def validation_step(self, batch, _):
        self._shared(batch, "val")

    def on_train_epoch_end(self):
        lr = self.trainer.optimizers[0].param_groups[0]["lr"]
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch} lr {lr:.5f} train {m['train_loss']:.3f} val acc {m['val_acc']:.3f}")

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.hparams.max_lr, momentum=0.9,
                                    weight_decay=self.hparams.weight_decay)
        scheduler = OneCycleLR(optimizer, max_lr=self.hparams.max_lr,
                               total_steps=self.trainer.estimated_stepping_batches)
        return [optimizer], [scheduler]


def cli():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--max_lr", type=float, default=0.1)
    return ap.parse_args()


if __name__ == "__main__":
    args = cli()
    pl.seed_everything(3)
    train = DataLoader(TensorDataset(*textures(512, 1)), batch_size=32, shuffle=True)
    val = DataLoader(TensorDataset(*textures(128, 2)), batch_size=64)
    trainer = pl.Trainer(max_epochs=args.epochs, accelerator="auto", devices=1, logger=False,
                         enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(TextureNet(max_lr=args.max_lr), train, val)
