import lightning as L
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def calls(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = (torch.rand(n, generator=g) < 0.25).long()
    f = torch.arange(24)[None, :, None]
    t = torch.arange(32)[None, None]
    start = 6 + 6 * torch.rand(n, 1, 1, generator=g)
    slope = torch.where(y[:, None, None] == 1, 0.35, 0.0) * (1 + 0.2 * torch.randn(n, 1, 1, generator=g))
    spec = torch.exp(-((f - start - slope * t) / 1.5) ** 2) + 0.5 * torch.randn(n, 24, 32, generator=g)
    return TensorDataset(spec[:, None], y)


class CallData(L.LightningDataModule):
    def setup(self, stage=None):
        self.train_set, self.valid_set = calls(600, 1), calls(210, 2)

    def train_dataloader(self):
        return DataLoader(self.train_set, 32, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.valid_set, 64)


class CallNet(L.LightningModule):
    def __init__(self, lr=6e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
                                 nn.Conv2d(12, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(),
                                 nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Dropout(0.2), nn.Linear(24 * 16, 2))
        self.register_buffer("balance", torch.tensor([0.5 / 0.75, 0.5 / 0.25]))
        self.counts = torch.zeros(2, 2)

    def training_step(self, batch, _):
        x, y = batch
        return F.cross_entropy(self.net(x), y, weight=self.balance)

    def on_validation_epoch_start(self):
        self.counts = torch.zeros(2, 2)

    def validation_step(self, batch, _):
        x, y = batch
        pred = self.net(x).argmax(1)
        self.counts += torch.bincount(y * 2 + pred, minlength=4).view(2, 2).cpu()

    def on_validation_epoch_end(self):
        tp, fn, fp = self.counts[1, 1], self.counts[1, 0], self.counts[0, 1]
        self.log("f1", 2 * tp / (2 * tp + fn + fp).clamp(min=1), prog_bar=True)

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.hparams.lr, momentum=0.9, weight_decay=1e-4)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=10 * self.hparams.lr,
                                                        total_steps=int(self.trainer.estimated_stepping_batches))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


class Printer(L.Callback):
    def on_validation_end(self, trainer, module):
        if not trainer.sanity_checking:
            print(f"epoch {trainer.current_epoch} f1 {trainer.callback_metrics['f1'].item():.3f} "
                  f"lr {trainer.optimizers[0].param_groups[0]['lr']:.4f}")


if __name__ == "__main__":
    L.seed_everything(1, verbose=False)
    trainer = L.Trainer(max_epochs=4, accelerator="auto", devices=1, logger=False, enable_checkpointing=False,
                        gradient_clip_val=2.0, callbacks=[Printer()], enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(CallNet(), datamodule=CallData())
