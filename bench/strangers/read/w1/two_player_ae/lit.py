import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, random_split


class FairAutoencoder(L.LightningModule):
    """Codes should keep the signal and hide the group attribute; the adversary has its own optimizer."""

    def __init__(self, d=12, code=4, weight=0.3, every=2):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.enc = nn.Sequential(nn.Linear(d, 32), nn.ReLU(), nn.Linear(32, code))
        self.dec = nn.Sequential(nn.Linear(code + 1, 32), nn.ReLU(), nn.Linear(32, d))
        self.adv = nn.Sequential(nn.Linear(code, 32), nn.ReLU(), nn.Linear(32, 1))

    def reconstruct(self, z, group):
        return self.dec(torch.cat([z, group.unsqueeze(1)], 1))

    def training_step(self, batch, batch_idx):
        x, group = batch
        opt_ae, opt_adv = self.optimizers()

        guess = self.adv(self.enc(x).detach()).squeeze(1)
        loss_adv = F.binary_cross_entropy_with_logits(guess, group)
        opt_adv.zero_grad()
        self.manual_backward(loss_adv)
        opt_adv.step()

        if batch_idx % self.hparams.every == 0:
            self.toggle_optimizer(opt_ae)
            z = self.enc(x)
            confusion = F.binary_cross_entropy_with_logits(self.adv(z).squeeze(1), torch.full_like(group, 0.5))
            rec = F.mse_loss(self.reconstruct(z, group), x)
            opt_ae.zero_grad()
            self.manual_backward(rec + self.hparams.weight * confusion)
            self.clip_gradients(opt_ae, 1.0, "norm")
            opt_ae.step()
            self.untoggle_optimizer(opt_ae)
            self.log("rec", rec)

    def on_train_epoch_end(self):
        for sch in self.lr_schedulers():
            sch.step()

    def validation_step(self, batch, _):
        x, group = batch
        z = self.enc(x)
        leak = ((self.adv(z).squeeze(1) > 0) == (group > 0.5)).float().mean()
        self.log_dict({"val_rec": F.mse_loss(self.reconstruct(z, group), x), "val_leak": leak}, batch_size=len(x))

    def configure_optimizers(self):
        ae = torch.optim.Adam([*self.enc.parameters(), *self.dec.parameters()], lr=3e-3)
        adv = torch.optim.Adam(self.adv.parameters(), lr=3e-3)
        return [ae, adv], [torch.optim.lr_scheduler.ExponentialLR(o, 0.9) for o in (ae, adv)]


def people(n):
    group = torch.randint(2, (n,)).float()
    latent = torch.randn(n, 3)
    mix = torch.randn(4, 12)
    x = torch.cat([latent, group.unsqueeze(1)], 1) @ mix + 0.1 * torch.randn(n, 12)
    return list(zip(x, group))


if __name__ == "__main__":
    L.seed_everything(30)
    train, val = random_split(people(1200), [1000, 200])
    trainer = L.Trainer(max_epochs=6, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(FairAutoencoder(), DataLoader(train, 50, shuffle=True), DataLoader(val, 100))
    print({k: round(v.item(), 3) for k, v in trainer.callback_metrics.items()})
