import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class AdvAE(L.LightningModule):
    """Adversarial autoencoder (Makhzani et al.) with manual optimisation."""

    def __init__(self, z=6, lr_ae=2e-3, lr_d=5e-4):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.enc = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, z))
        self.dec = nn.Sequential(nn.Linear(z, 64), nn.ReLU(), nn.Linear(64, 64))
        self.disc = nn.Sequential(nn.Linear(z, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def training_step(self, batch, batch_idx):
        opt_ae, opt_d = self.optimizers()
        x, = batch

        self.toggle_optimizer(opt_ae)
        code = self.enc(x)
        rec = F.mse_loss(self.dec(code), x)
        fool = F.softplus(-self.disc(code)).mean()
        opt_ae.zero_grad()
        self.manual_backward(rec + 0.02 * fool)
        opt_ae.step()
        self.untoggle_optimizer(opt_ae)

        self.toggle_optimizer(opt_d)
        prior = torch.randn_like(code)
        loss_d = F.softplus(-self.disc(prior)).mean() + F.softplus(self.disc(code.detach())).mean()
        opt_d.zero_grad()
        self.manual_backward(loss_d)
        opt_d.step()
        self.untoggle_optimizer(opt_d)
        self.log_dict({"rec": rec, "fool": fool, "disc": loss_d}, on_step=False, on_epoch=True)

    def on_train_epoch_end(self):
        for sched in self.lr_schedulers():
            sched.step()
        m = self.trainer.callback_metrics
        if self.current_epoch % 5 == 4:
            print(self.current_epoch, {k: round(v.item(), 4) for k, v in m.items()})

    def configure_optimizers(self):
        ae = torch.optim.Adam([*self.enc.parameters(), *self.dec.parameters()], lr=self.hparams.lr_ae)
        d = torch.optim.Adam(self.disc.parameters(), lr=self.hparams.lr_d, betas=(0.5, 0.999))
        return [ae, d], [torch.optim.lr_scheduler.ExponentialLR(o, 0.97) for o in (ae, d)]


if __name__ == "__main__":
    L.seed_everything(0)
    x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    trainer = L.Trainer(max_epochs=15, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(AdvAE(), DataLoader(TensorDataset(x), 64, shuffle=True))
