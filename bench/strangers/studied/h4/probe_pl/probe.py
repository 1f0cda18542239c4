import logging
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Encoder(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout2d(0.1),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten(), nn.Linear(512, dim))

    def forward(self, x):
        return self.body(x)


def pretrain(encoder, x, epochs=4):
    """Rotation prediction on unlabelled pictures."""
    task = nn.Linear(64, 4)
    opt = torch.optim.Adam([*encoder.parameters(), *task.parameters()], lr=2e-3)
    encoder.train()
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(64):
            turns = torch.randint(0, 4, (len(idx),))
            img = torch.stack([torch.rot90(x[i], int(k), (1, 2)) for i, k in zip(idx, turns)])
            loss = F.cross_entropy(task(encoder(img)), turns)
            opt.zero_grad()
            loss.backward()
            opt.step()
    print(f"pretext loss {loss.item():.3f}")


class LinearProbe(L.LightningModule):
    def __init__(self, encoder, classes=10, lr=1e-2):
        super().__init__()
        self.encoder = encoder.requires_grad_(False)
        self.head = nn.Linear(64, classes)
        self.lr = lr

    def train(self, mode=True):
        super().train(mode)
        self.encoder.eval()  # the features stay those of the pretrained network
        return self

    def forward(self, x):
        with torch.no_grad():
            z = self.encoder(x)
        return self.head(z)

    def training_step(self, batch, _):
        return F.cross_entropy(self(batch[0]), batch[1])

    def validation_step(self, batch, _):
        self.log("val_acc", (self(batch[0]).argmax(1) == batch[1]).float().mean())

    def on_validation_epoch_end(self):
        print(f"epoch {self.current_epoch} val acc {float(self.trainer.callback_metrics['val_acc']):.3f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.head.parameters(), lr=self.lr)


def main():
    L.seed_everything(0, verbose=False)
    x, y = load_digits(return_X_y=True)
    data = TensorDataset(torch.tensor(x, dtype=torch.float32).view(-1, 1, 8, 8) / 16, torch.tensor(y))
    fit_set, val_set = random_split(data, [1300, len(data) - 1300])
    encoder = Encoder()
    pretrain(encoder, torch.stack([img for img, _ in fit_set]))
    probe = LinearProbe(encoder).train()
    trainer = L.Trainer(max_epochs=5, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)
    trainer.fit(probe, DataLoader(fit_set, batch_size=64, shuffle=True), DataLoader(val_set, batch_size=500))


if __name__ == "__main__":
    main()
