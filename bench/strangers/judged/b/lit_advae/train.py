"""Adversarial autoencoder in Lightning with manual optimization and two optimizers."""
import logging
import warnings

import lightning.pytorch as pl
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class AAE(pl.LightningModule):
    def __init__(self, z=4, h=64, lr=2e-3, weight=0.05):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.enc = nn.Sequential(nn.Linear(64, h), nn.ReLU(), nn.Linear(h, z))
        self.dec = nn.Sequential(nn.Linear(z, h), nn.ReLU(), nn.Linear(h, 64))
        self.disc = nn.Sequential(nn.Linear(z, h), nn.LeakyReLU(0.2), nn.Linear(h, 1))

    def configure_optimizers(self):
        ae = torch.optim.Adam([*self.enc.parameters(), *self.dec.parameters()], self.hparams.lr)
        di = torch.optim.Adam(self.disc.parameters(), self.hparams.lr, betas=(0.5, 0.9))
        sched = torch.optim.lr_scheduler.StepLR(ae, 4, 0.5)
        return [ae, di], [sched]

    def training_step(self, batch, _):
        x, = batch
        opt_ae, opt_di = self.optimizers()

        self.toggle_optimizer(opt_ae)
        z = self.enc(x)
        rec = F.mse_loss(self.dec(z), x)
        fool = F.softplus(-self.disc(z)).mean()
        opt_ae.zero_grad()
        self.manual_backward(rec + self.hparams.weight * fool)
        opt_ae.step()
        self.untoggle_optimizer(opt_ae)

        self.toggle_optimizer(opt_di)
        prior = torch.randn_like(z)
        d = F.softplus(-self.disc(prior)).mean() + F.softplus(self.disc(z.detach())).mean()
        opt_di.zero_grad()
        self.manual_backward(d)
        self.clip_gradients(opt_di, gradient_clip_val=1.0, gradient_clip_algorithm="norm")
        opt_di.step()
        self.untoggle_optimizer(opt_di)
        self.log_dict({"rec": rec, "disc": d}, on_step=False, on_epoch=True)

    def on_train_epoch_end(self):
        self.lr_schedulers().step()

    def validation_step(self, batch, _):
        x, = batch
        z = self.enc(x)
        self.log("val_rec", F.mse_loss(self.dec(z), x), batch_size=len(x))
        self.log("val_z_std", z.std(0).mean(), batch_size=len(x))

    def on_validation_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch}: val reconstruction {m['val_rec']:.4f}, latent std {m['val_z_std']:.3f}")


def main():
    pl.seed_everything(8, verbose=False)
    x = torch.tensor(load_digits().data / 16, dtype=torch.float32)
    fit, held = random_split(TensorDataset(x), [1400, len(x) - 1400], generator=torch.Generator().manual_seed(8))
    trainer = pl.Trainer(max_epochs=6, accelerator="cpu", logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)
    trainer.fit(AAE(), DataLoader(fit, 70, shuffle=True), DataLoader(held, 400))


if __name__ == "__main__":
    main()
