import lightning as L
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def conv(c_in, c_out):
    return nn.Sequential(nn.Conv2d(c_in, c_out, 3, padding=1), nn.BatchNorm2d(c_out), nn.ReLU())


def edge_filters(n=8):
    """Fixed oriented edge detectors, they are not trained."""
    grid = torch.arange(3.0) - 1
    angle = torch.arange(n) * torch.pi / n * 2
    kernels = angle.cos()[:, None, None] * grid + angle.sin()[:, None, None] * grid[:, None]
    layer = nn.Conv2d(1, n, 3, padding=1, bias=False)
    layer.weight.data.copy_(kernels.unsqueeze(1) / 3)
    return layer


class SignNet(nn.Module):
    """Deep classifier with a second exit half way; the exit only guides training."""

    def __init__(self, n_classes):
        super().__init__()
        self.stem = nn.Sequential(edge_filters(8), nn.ReLU())
        self.mid = nn.Sequential(conv(8, 24), nn.MaxPool2d(2))
        self.top = nn.Sequential(conv(24, 32), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.exit = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, n_classes))
        self.head = nn.Linear(32, n_classes)

    def forward(self, x):
        m = self.mid(self.stem(x))
        out = self.head(self.top(m))
        return (out, self.exit(m)) if self.training else out


class SignModule(L.LightningModule):
    def __init__(self, n_classes=10, lr=5e-3, accumulate=4, aux=0.3):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.net = SignNet(n_classes)
        for p in self.net.stem.parameters():
            p.requires_grad = False
        self.hits = self.count = 0

    def training_step(self, batch, batch_idx):
        x, y = batch
        opt = self.optimizers()
        main, side = self.net(x)
        loss = F.cross_entropy(main, y) + self.hparams.aux * F.cross_entropy(side, y)
        self.manual_backward(loss / self.hparams.accumulate)
        last = batch_idx + 1 == self.trainer.num_training_batches
        if (batch_idx + 1) % self.hparams.accumulate == 0 or last:
            self.clip_gradients(opt, gradient_clip_val=1.0, gradient_clip_algorithm="norm")
            opt.step()
            opt.zero_grad()
        self.log("loss", loss, on_epoch=True, on_step=False)

    def on_train_epoch_end(self):
        self.lr_schedulers().step()

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.hits += (self.net(x).argmax(1) == y).sum().item()
        self.count += len(y)

    def on_validation_epoch_end(self):
        print(f"epoch {self.current_epoch}: accuracy {self.hits / self.count:.3f}")
        self.hits = self.count = 0

    def configure_optimizers(self):
        opt = torch.optim.AdamW((p for p in self.parameters() if p.requires_grad), lr=self.hparams.lr)
        return [opt], [torch.optim.lr_scheduler.ExponentialLR(opt, 0.8)]


if __name__ == "__main__":
    L.seed_everything(1, verbose=False)
    d = load_digits()
    x = torch.tensor(d.images / 16, dtype=torch.float32)[:, None]
    y = torch.tensor(d.target)
    train = DataLoader(TensorDataset(x[:1300], y[:1300]), batch_size=16, shuffle=True)
    val = DataLoader(TensorDataset(x[1300:], y[1300:]), batch_size=250)
    trainer = L.Trainer(max_epochs=4, accelerator="cpu", logger=False, enable_checkpointing=False, num_sanity_val_steps=0,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(SignModule(), train, val)
