import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from encoders import create_encoder

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
BANDS = 40


class MoistureData(L.LightningDataModule):
    def setup(self, stage=None):
        g = torch.Generator().manual_seed(9)
        w = torch.randn(BANDS, generator=g) / BANDS ** 0.5
        x = torch.randn(700, BANDS, generator=g)
        y = torch.tanh(x @ w) + 0.6 * torch.randn(700, generator=g)
        self.train_set = TensorDataset(x[:300], y[:300])
        self.val_set = TensorDataset(x[300:], y[300:])

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=30, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=200)


class MoistureRegressor(L.LightningModule):
    def __init__(self, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.encoder, width = create_encoder(BANDS)
        self.head = nn.Linear(width, 1)
        self.curve = []

    def forward(self, x):
        return self.head(self.encoder(x)).squeeze(-1)

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.mse_loss(self(x), y)
        self.log("train_mse", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_mse", nn.functional.mse_loss(self(x), y), prog_bar=True)

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        self.curve.append((float(m["train_mse"]), float(m["val_mse"])))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=1e-3)


if __name__ == "__main__":
    L.seed_everything(1, verbose=False)
    model = MoistureRegressor()
    trainer = L.Trainer(max_epochs=12, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)
    trainer.fit(model, datamodule=MoistureData())
    for epoch, (tr, va) in enumerate(model.curve):
        if epoch % 4 == 0:
            print(f"epoch {epoch:2d}  train mse {tr:.3f}  val mse {va:.3f}")
    print("val mse at the end", round(model.curve[-1][1], 3))
