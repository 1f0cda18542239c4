"""Battery health with error bars: dropout stays on when predicting (Gal & Ghahramani)."""
import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def cells(n, seed, lo=0.0, hi=1.0):
    g = torch.Generator().manual_seed(seed)
    cycles = lo + (hi - lo) * torch.rand(n, 1, generator=g)
    temp = torch.randn(n, 1, generator=g)
    health = 1 - 0.3 * cycles - 0.25 * cycles**4 - 0.03 * temp * cycles
    x = torch.cat([cycles, temp, torch.randn(n, 3, generator=g)], 1)
    return TensorDataset(x, (health + 0.01 * torch.randn(n, 1, generator=g)) * 5)


class Battery(L.LightningModule):
    def __init__(self, samples=40, drop=0.1):
        super().__init__()
        self.samples = samples
        self.norm = nn.BatchNorm1d(5)
        self.net = nn.Sequential(nn.Linear(5, 64), nn.ReLU(), nn.Dropout(drop), nn.Linear(64, 64), nn.ReLU(),
                                 nn.Dropout(drop), nn.Linear(64, 1))

    def forward(self, x):
        return self.net(self.norm(x))

    def training_step(self, batch, _):
        x, y = batch
        return nn.functional.mse_loss(self(x), y)

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_mse", nn.functional.mse_loss(self(x), y))

    def on_predict_start(self):
        # the normalisation stays in evaluation mode, the dropout layers do not
        for m in self.modules():
            if isinstance(m, nn.Dropout):
                m.train()

    def predict_step(self, batch, _):
        x, _ = batch
        draws = torch.stack([self(x) for _ in range(self.samples)])
        return draws.mean(0), draws.std(0)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=5e-3)


if __name__ == "__main__":
    L.seed_everything(0, verbose=False)
    trainer = L.Trainer(max_epochs=8, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    model = Battery()
    trainer.fit(model, DataLoader(cells(1000, 1), 50, shuffle=True), DataLoader(cells(300, 2), 300))
    print(f"val mse {trainer.callback_metrics['val_mse'].item():.4f}")
    for name, data in (("in range", cells(300, 3)), ("older cells", cells(300, 4, 1.0, 1.3))):
        mean, std = trainer.predict(model, DataLoader(data, 300))[0]
        rmse = (mean - data.tensors[1]).square().mean().sqrt()
        print(f"{name}: rmse {rmse.item():.3f}  mean predicted std {std.mean().item():.3f}")
