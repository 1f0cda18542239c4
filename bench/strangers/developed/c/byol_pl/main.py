"""BYOL on digits with Lightning; linear probe at the end."""
import copy
import lightning as L
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def augment(x):
    shift = torch.randint(-1, 2, (2,)).tolist()
    x = torch.roll(x, shift, dims=(-2, -1))
    x = x * (torch.rand(x.size(0), 1, 1, 1, device=x.device) * 0.6 + 0.7)
    return x + 0.1 * torch.randn_like(x)


def head(i, o, h=64):
    return nn.Sequential(nn.Linear(i, h), nn.BatchNorm1d(h), nn.ReLU(), nn.Linear(h, o))


class BYOL(L.LightningModule):
    def __init__(self, dim=32, tau=0.98):
        super().__init__()
        self.tau = tau
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten(), nn.Linear(512, 64),
        )
        self.online = nn.Sequential(self.encoder, head(64, dim))
        self.predictor = head(dim, dim)
        self.target = copy.deepcopy(self.online).requires_grad_(False)

    def regress(self, a, b):
        p = self.predictor(self.online(a))
        with torch.no_grad():
            t = self.target(b)
        return 2 - 2 * F.cosine_similarity(p, t, dim=-1).mean()

    def training_step(self, batch, _):
        (x,) = batch
        a, b = augment(x), augment(x)
        loss = self.regress(a, b) + self.regress(b, a)
        self.log("loss", loss, on_epoch=True, on_step=False)
        return loss

    @torch.no_grad()
    def on_train_batch_end(self, *_):
        for t, o in zip(self.target.parameters(), self.online.parameters()):
            t.lerp_(o, 1 - self.tau)

    def configure_optimizers(self):
        return torch.optim.AdamW([p for p in self.parameters() if p.requires_grad], lr=2e-3)


def main():
    L.seed_everything(1)
    d = load_digits()
    x = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1) / 16
    perm = torch.randperm(len(x))
    tr, te = perm[:1300], perm[1300:]
    byol = BYOL()
    trainer = L.Trainer(max_epochs=6, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(byol, DataLoader(TensorDataset(x[tr]), 128, shuffle=True, drop_last=True))
    byol.eval()
    with torch.no_grad():
        z = byol.encoder(x).numpy()
    probe = LogisticRegression(max_iter=500).fit(z[tr], d.target[tr])
    print("loss", float(trainer.callback_metrics["loss"]), "probe accuracy", probe.score(z[te], d.target[te]))


if __name__ == "__main__":
    main()
