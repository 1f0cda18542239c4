import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from pretrain import CODE, make_encoder, pretrain, spectra

warnings.filterwarnings("ignore", message=".*num_workers.*")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class PeakFinder(L.LightningModule):
    def __init__(self, checkpoint=None):
        super().__init__()
        self.encoder = make_encoder()
        self.peaks = nn.Sequential(nn.GELU(), nn.Linear(CODE, 2))
        if checkpoint is not None:
            self.load_encoder(checkpoint)

    def load_encoder(self, path):
        weights = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
        weights = {k.removeprefix("net."): v for k, v in weights.items() if "encoder" in k}
        self.encoder.load_state_dict(weights, strict=False)
        self.encoder.requires_grad_(False)

    def forward(self, x):
        return self.peaks(self.encoder(x))

    def training_step(self, batch, _):
        x, y = batch
        return nn.functional.mse_loss(self(x), y)

    def validation_step(self, batch, _):
        x, y = batch
        self.log("mae", (self(x) - y).abs().mean(), on_epoch=True, batch_size=len(x))

    def configure_optimizers(self):
        return torch.optim.Adam((p for p in self.parameters() if p.requires_grad), lr=1e-2)


def main():
    L.seed_everything(5, verbose=False)
    print("pretraining loss", round(pretrain("spectra.ckpt"), 5))
    train = DataLoader(TensorDataset(*spectra(150, 2)), 25, shuffle=True)
    valid = DataLoader(TensorDataset(*spectra(300, 3)), 100)
    model = PeakFinder("spectra.ckpt")
    trainer = L.Trainer(max_epochs=20, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(model, train, valid)
    print("validation mae", round(trainer.callback_metrics["mae"].item(), 4))


if __name__ == "__main__":
    main()
