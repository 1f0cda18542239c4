"""Adversarial autoencoder in Lightning with manual optimization."""
import logging
import warnings

import lightning as L
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class AAE(L.LightningModule):
    def __init__(self, latent=4, lr=2e-3, adv_weight=0.05):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.enc = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, latent))
        self.dec = nn.Sequential(nn.Linear(latent, 64), nn.ReLU(), nn.Linear(64, 64))
        self.critic = nn.Sequential(nn.Linear(latent, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def configure_optimizers(self):
        ae = torch.optim.Adam([*self.enc.parameters(), *self.dec.parameters()], lr=self.hparams.lr)
        cr = torch.optim.Adam(self.critic.parameters(), lr=self.hparams.lr / 2)
        return [ae, cr], [torch.optim.lr_scheduler.ExponentialLR(ae, 0.9)]

    def training_step(self, batch, _):
        (x,) = batch
        opt_ae, opt_cr = self.optimizers()
        bce = nn.functional.binary_cross_entropy_with_logits

        z = self.enc(x).detach()
        real, fake = self.critic(torch.randn_like(z)), self.critic(z)
        loss_cr = bce(real, torch.ones_like(real)) + bce(fake, torch.zeros_like(fake))
        opt_cr.zero_grad()
        self.manual_backward(loss_cr)
        opt_cr.step()

        self.toggle_optimizer(opt_ae)
        z = self.enc(x)
        judged = self.critic(z)
        rec = nn.functional.mse_loss(self.dec(z), x)
        loss_ae = rec + self.hparams.adv_weight * bce(judged, torch.ones_like(judged))
        opt_ae.zero_grad()
        self.manual_backward(loss_ae)
        self.clip_gradients(opt_ae, gradient_clip_val=1.0, gradient_clip_algorithm="norm")
        opt_ae.step()
        self.untoggle_optimizer(opt_ae)
        self.log_dict({"rec": rec, "critic": loss_cr}, on_step=False, on_epoch=True)

    def on_train_epoch_end(self):
        self.lr_schedulers().step()

    def validation_step(self, batch, _):
        (x,) = batch
        self.log("val_rec", nn.functional.mse_loss(self.dec(self.enc(x)), x))

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking:
            print(f"epoch {self.current_epoch} val_rec {self.trainer.callback_metrics['val_rec']:.4f}")


def main():
    L.seed_everything(3, verbose=False)
    x = torch.tensor(load_digits().data / 16.0, dtype=torch.float32)
    x = x[torch.randperm(len(x))]
    train = DataLoader(TensorDataset(x[:1400]), batch_size=64, shuffle=True)
    val = DataLoader(TensorDataset(x[1400:]), batch_size=200)
    trainer = L.Trainer(max_epochs=6, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(AAE(), train, val)


if __name__ == "__main__":
    main()
