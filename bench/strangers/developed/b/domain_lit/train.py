"""Domain-adversarial adaptation (DANN) with manual optimization: labelled source, unlabelled target."""
import math
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.utilities import CombinedLoader
from sklearn.datasets import make_moons
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from modules import GradientReversal

warnings.filterwarnings("ignore")


class DANN(L.LightningModule):
    def __init__(self, total_steps, h=32):
        super().__init__()
        self.automatic_optimization = False
        self.total_steps = total_steps
        self.body = nn.Sequential(nn.Linear(2, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU())
        self.label_head = nn.Linear(h, 2)
        self.domain_head = AdversarialHead(h)

    def training_step(self, batch, _):
        opt_main, opt_dom = self.optimizers()
        (xs, ys), (xt,) = batch["source"], batch["target"]
        p = self.global_step / 2 / self.total_steps  # both optimizers count towards global_step
        strength = 2 / (1 + math.exp(-10 * p)) - 1
        feats = self.body(torch.cat([xs, xt]))
        domain = torch.cat([torch.zeros(len(xs)), torch.ones(len(xt))]).long().to(self.device)
        label_loss = F.cross_entropy(self.label_head(feats[:len(xs)]), ys)
        domain_loss = F.cross_entropy(self.domain_head(feats, 0.3 * strength), domain)
        opt_main.zero_grad()
        opt_dom.zero_grad()
        self.manual_backward(label_loss + domain_loss)
        opt_main.step()
        opt_dom.step()
        self.log_dict({"label_loss": label_loss, "domain_loss": domain_loss})

    def validation_step(self, batch, _):
        x, y = batch
        acc = (self.label_head(self.body(x)).argmax(1) == y).float().mean()
        self.log("target_acc", acc, batch_size=len(y))

    def on_validation_epoch_end(self):
        print(f"epoch {self.current_epoch}: target accuracy {self.trainer.callback_metrics['target_acc']:.3f}")

    def configure_optimizers(self):
        main = torch.optim.Adam([*self.body.parameters(), *self.label_head.parameters()], 3e-3)
        return main, torch.optim.Adam(self.domain_head.parameters(), 3e-3)


class AdversarialHead(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.rev = GradientReversal()
        self.net = nn.Sequential(nn.Linear(h, h), nn.ReLU(), nn.Linear(h, 2))

    def forward(self, z, strength):
        return self.net(self.rev(z, strength))


def rotated_moons(n, degrees, seed):
    x, y = make_moons(n, noise=0.1, random_state=seed)
    x = torch.tensor(x, dtype=torch.float32) - torch.tensor([0.5, 0.25])
    a = math.radians(degrees)
    return x @ torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]]), torch.tensor(y)


if __name__ == "__main__":
    L.seed_everything(16, verbose=False)
    source = TensorDataset(*rotated_moons(600, 0, 1))
    target_x, _ = rotated_moons(600, 30, 2)
    held_out = TensorDataset(*rotated_moons(300, 30, 3))
    loaders = CombinedLoader(
        {
            "source": DataLoader(source, 32, shuffle=True),
            "target": DataLoader(TensorDataset(target_x), 32, shuffle=True),
        },
        mode="min_size",
    )
    epochs = 8
    L.Trainer(
        max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, num_sanity_val_steps=0,
    ).fit(DANN(epochs * 19), loaders, DataLoader(held_out, 300))
