import logging
import warnings

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from sklearn.datasets import make_classification
from sklearn.metrics import f1_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class SensorData(L.LightningDataModule):
    def __init__(self, batch_size=64):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        x, y = make_classification(2400, 20, n_informative=8, weights=[0.85], class_sep=0.9, flip_y=0.02, random_state=3)
        full = TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32))
        self.fit_set, self.val_set, self.test_set = random_split(
            full, [1400, 500, 500], generator=torch.Generator().manual_seed(3))

    def train_dataloader(self):
        return DataLoader(self.fit_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=500)

    def test_dataloader(self):
        return DataLoader(self.test_set, batch_size=500)


class FaultDetector(L.LightningModule):
    def __init__(self, lr=1e-3, width=64):
        super().__init__()
        self.save_hyperparameters()
        self.body = nn.Sequential(
            nn.Linear(20, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
        self.register_buffer("pos_weight", torch.tensor(3.0))

    def forward(self, x):
        return self.body(x).squeeze(-1)

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.binary_cross_entropy_with_logits(self(x), y, pos_weight=self.pos_weight)
        self.log("train_loss", loss)
        return loss

    def _score(self, batch, name):
        x, y = batch
        pred = (self(x) > 0).long()
        self.log(f"{name}_f1", f1_score(y.long().numpy(), pred.numpy(), zero_division=0), prog_bar=True)

    def validation_step(self, batch, _):
        self._score(batch, "val")

    def test_step(self, batch, _):
        self._score(batch, "test")

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking:
            print(f"epoch {self.current_epoch:2d}  val_f1 {self.trainer.callback_metrics['val_f1']:.3f}")

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(opt, 10)}


def main():
    L.seed_everything(0, verbose=False)
    keeper = ModelCheckpoint(
        dirpath="models",
        filename="detector-{epoch:02d}-{val_f1:.3f}",
        monitor="val_f1",
        save_top_k=1,
        enable_version_counter=False,
    )
    trainer = L.Trainer(max_epochs=10, accelerator="cpu", logger=False, callbacks=[keeper], num_sanity_val_steps=0,
                        enable_progress_bar=False, enable_model_summary=False)
    data = SensorData()
    trainer.fit(FaultDetector(), datamodule=data)
    print("shipping", keeper.best_model_path.split("/")[-1])
    result = trainer.test(ckpt_path="best", datamodule=data, verbose=False, weights_only=False)
    print(result)


if __name__ == "__main__":
    main()
