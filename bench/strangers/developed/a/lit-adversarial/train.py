"""Domain-invariant features: a classifier and an adversary that tries to guess the domain (Lightning,
manual optimization; the adversary is updated twice as often)."""
import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(2, (n,), generator=g)
    d = torch.randint(2, (n,), generator=g)
    x = 0.7 * torch.randn(n, 12, generator=g)
    x[:, :3] += 1.2 * (2 * y[:, None] - 1)
    x[:, 6:9] += 2.0 * (2 * d[:, None] - 1)
    return TensorDataset(x, y, d.float())


class Invariant(L.LightningModule):
    def __init__(self, lam=0.5, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.features = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 8))
        self.label = nn.Linear(8, 2)
        self.domain = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))

    def _domain_loss(self, z, d):
        return F.binary_cross_entropy_with_logits(self.domain(z).squeeze(1), d)

    def training_step(self, batch, batch_idx):
        x, y, d = batch
        opt_main, opt_adv = self.optimizers()

        # 1) the adversary, on features that stay fixed
        z = self.features(x).detach()
        for _ in range(2):
            adv = self._domain_loss(z, d)
            opt_adv.zero_grad()
            self.manual_backward(adv)
            opt_adv.step()

        # 2) features and classifier: good labels, bad domain guess
        self.toggle_optimizer(opt_main)
        z = self.features(x)
        task = F.cross_entropy(self.label(z), y)
        total = task - self.hparams.lam * self._domain_loss(z, d).clamp(max=0.8)
        opt_main.zero_grad()
        self.manual_backward(total)
        self.clip_gradients(opt_main, gradient_clip_val=1.0, gradient_clip_algorithm="norm")
        opt_main.step()
        self.untoggle_optimizer(opt_main)
        self.log_dict({"task": task, "adv": adv}, on_step=False, on_epoch=True)

    def on_train_epoch_end(self):
        for s in self.lr_schedulers():
            s.step()

    def validation_step(self, batch, batch_idx):
        x, y, d = batch
        z = self.features(x)
        self.log("val_label", (self.label(z).argmax(1) == y).float().mean(), prog_bar=True)
        self.log("val_domain", ((self.domain(z).squeeze(1) > 0) == d.bool()).float().mean(), prog_bar=True)

    def configure_optimizers(self):
        lr = self.hparams.lr
        main = torch.optim.Adam([*self.features.parameters(), *self.label.parameters()], lr=lr)
        adv = torch.optim.Adam(self.domain.parameters(), lr=2 * lr)
        decay = [torch.optim.lr_scheduler.ExponentialLR(o, 0.9) for o in (main, adv)]
        return [main, adv], decay


if __name__ == "__main__":
    L.seed_everything(2024)
    module = Invariant()
    trainer = L.Trainer(max_epochs=6, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(module, DataLoader(make(800, 1), 40, shuffle=True), DataLoader(make(300, 2), 100))
    print({k: round(v.item(), 3) for k, v in trainer.callback_metrics.items()})
