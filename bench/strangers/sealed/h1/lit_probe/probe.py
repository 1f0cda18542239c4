import logging
import warnings

import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.functional.classification import multiclass_accuracy

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def stripes(n, seed, n_classes):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    xx, yy = np.meshgrid(np.arange(12), np.arange(12))
    ang = y[:, None, None] * np.pi / n_classes
    img = np.sin(1.3 * (np.cos(ang) * xx + np.sin(ang) * yy) + rng.uniform(0, 6.28, (n, 1, 1)))
    img = img + rng.normal(0, 0.4, img.shape)
    return TensorDataset(torch.tensor(img[:, None], dtype=torch.float32), torch.tensor(y))


def make_backbone():
    return nn.Sequential(nn.Conv2d(1, 16, 5), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 24, 3), nn.BatchNorm2d(24), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())


class Base(L.LightningModule):
    def __init__(self, n_classes):
        super().__init__()
        self.n_classes = n_classes

    def training_step(self, batch, _):
        return nn.functional.cross_entropy(self(batch[0]), batch[1])

    def validation_step(self, batch, _):
        acc = multiclass_accuracy(self(batch[0]), batch[1], self.n_classes, average="micro")
        self.log("acc", acc)

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking:
            print(f"{type(self).__name__} epoch {self.current_epoch}: acc {self.trainer.callback_metrics['acc']:.3f}")


class Pretrain(Base):
    def __init__(self, n_classes):
        super().__init__(n_classes)
        self.backbone, self.fc = make_backbone(), nn.Linear(24, n_classes)

    def forward(self, x):
        return self.fc(self.backbone(x))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=5e-3)


class LinearProbe(Base):
    def __init__(self, backbone, n_classes):
        super().__init__(n_classes)
        self.backbone = backbone.requires_grad_(False)
        self.fc = nn.Linear(24, n_classes)

    def on_train_epoch_start(self):
        self.backbone.eval()

    def forward(self, x):
        with torch.no_grad():
            z = self.backbone(x)
        return self.fc(z)

    def configure_optimizers(self):
        return torch.optim.Adam(self.fc.parameters(), lr=2e-2)


def fit(module, n_classes, seed, epochs, n):
    L.Trainer(max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False,
              enable_progress_bar=False, enable_model_summary=False).fit(
        module, DataLoader(stripes(n, seed, n_classes), batch_size=40, shuffle=True),
        DataLoader(stripes(200, seed + 1, n_classes), batch_size=200))


if __name__ == "__main__":
    L.seed_everything(0, verbose=False)
    source = Pretrain(6)
    fit(source, 6, 0, 3, 600)
    fit(LinearProbe(source.backbone, 4), 4, 10, 3, 400)
