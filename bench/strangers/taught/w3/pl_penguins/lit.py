import warnings

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import Callback
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy

warnings.filterwarnings("ignore")


class WineData(L.LightningDataModule):
    def setup(self, stage=None):
        x, y = load_wine(return_X_y=True)
        x = torch.tensor(x, dtype=torch.float32)
        y = torch.tensor(y)
        i, j = train_test_split(range(len(y)), test_size=0.3, stratify=y, random_state=0)
        mu, sd = x[i].mean(0), x[i].std(0)
        x = (x - mu) / sd
        self.train, self.val = TensorDataset(x[i], y[i]), TensorDataset(x[j], y[j])

    def train_dataloader(self):
        return DataLoader(self.train, 16, shuffle=True)

    def val_dataloader(self):
        # the second loader measures the generalisation gap without dropout, under its own name
        return [DataLoader(self.val, 64), DataLoader(self.train, 64)]


class Lit(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(13, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU(),
                                       torch.nn.Dropout(0.3), torch.nn.Linear(32, 3))
        self.acc = torch.nn.ModuleDict({"val": MulticlassAccuracy(3), "fit": MulticlassAccuracy(3)})

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx, dataloader_idx=0):
        x, y = batch
        name = ("val", "fit")[dataloader_idx]
        self.acc[name].update(self.net(x), y)
        self.log(f"{name}_acc", self.acc[name], on_epoch=True, on_step=False, add_dataloader_idx=False)

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=5e-3)
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)}


class Print(Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        m = trainer.callback_metrics
        print(f"epoch {trainer.current_epoch} loss {m['train_loss']:.3f} val {m['val_acc']:.3f} train {m['fit_acc']:.3f}")


if __name__ == "__main__":
    L.seed_everything(1, verbose=False)
    trainer = L.Trainer(max_epochs=6, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, callbacks=[Print()])
    trainer.fit(Lit(), datamodule=WineData())
