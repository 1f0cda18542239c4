import logging
import warnings

import lightning as L
import torch
from torch import nn

from data import N_MELS, WORDS, build_loaders

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", ".*num_workers.*")
CFG = {"batch_size": 50, "spec_augment": True, "hidden": 32, "lr": 3e-3, "epochs": 6, "seed": 0}


class Spotter(L.LightningModule):
    def __init__(self, hidden, lr):
        super().__init__()
        self.save_hyperparameters()
        self.rnn = nn.GRU(N_MELS, hidden, batch_first=True)
        self.out = nn.Linear(hidden, len(WORDS))

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        _, h = self.rnn(packed)
        return self.out(h[-1])

    def training_step(self, batch, _):
        x, lengths, y = batch
        loss = nn.functional.cross_entropy(self(x, lengths), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True, batch_size=len(y))
        return loss

    def validation_step(self, batch, _):
        x, lengths, y = batch
        hit = (self(x, lengths).argmax(-1) == y).float().mean()
        self.log("valid_acc", hit, batch_size=len(y))

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking:
            print(f"{self.current_epoch}: valid={self.trainer.callback_metrics['valid_acc']:.3f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


if __name__ == "__main__":
    L.seed_everything(CFG["seed"])
    train_loader, valid_loader = build_loaders(CFG)
    trainer = L.Trainer(
        max_epochs=CFG["epochs"], accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )
    trainer.fit(Spotter(CFG["hidden"], CFG["lr"]), train_loader, valid_loader)
