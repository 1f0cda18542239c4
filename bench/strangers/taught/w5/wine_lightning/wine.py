from dataclasses import dataclass

import lightning as L
import torch
import torch.nn.functional as F
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Options:
    hidden: int = 32
    lr: float = 0.05
    momentum: float = 0.9
    weight_decay: float = 1e-4
    grad_clip: float = 1e-4
    epochs: int = 30
    batch_size: int = 16
    seed: int = 123


class WineData(L.LightningDataModule):
    def __init__(self, batch_size, seed):
        super().__init__()
        self.batch_size, self.seed = batch_size, seed

    def setup(self, stage=None):
        X, y = load_wine(return_X_y=True)
        Xa, Xb, ya, yb = train_test_split(X, y, test_size=0.3, stratify=y, random_state=self.seed)
        sc = StandardScaler().fit(Xa)
        self.train = TensorDataset(torch.tensor(sc.transform(Xa)).float(), torch.tensor(ya))
        self.val = TensorDataset(torch.tensor(sc.transform(Xb)).float(), torch.tensor(yb))

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=64)


class WineNet(L.LightningModule):
    def __init__(self, opt):
        super().__init__()
        self.opt = opt
        self.net = nn.Sequential(nn.Linear(13, opt.hidden), nn.ReLU(), nn.Linear(opt.hidden, 3))

    def training_step(self, batch, _):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        out = self.net(x)
        self.log("val_loss", F.cross_entropy(out, y))
        self.log("val_acc", (out.argmax(1) == y).float().mean())

    def configure_optimizers(self):
        o = self.opt
        return torch.optim.SGD(self.parameters(), lr=o.lr, momentum=o.momentum, weight_decay=o.weight_decay)


def main(opt=Options()):
    L.seed_everything(opt.seed)
    dm = WineData(opt.batch_size, opt.seed)
    net = WineNet(opt)
    trainer = L.Trainer(
        max_epochs=opt.epochs,
        accelerator="cpu",
        gradient_clip_val=opt.grad_clip,
        gradient_clip_algorithm="norm",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(net, datamodule=dm)
    print({k: round(float(v), 4) for k, v in trainer.callback_metrics.items()})


if __name__ == "__main__":
    main()
