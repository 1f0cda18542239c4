import lightning as L
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.SiLU()]
    return nn.Sequential(*layers[:-1])


class Encoder(nn.Module):
    """q(z | x, c), diagonal Gaussian."""

    def __init__(self, x_dim, c_dim, hidden, z_dim):
        super().__init__()
        self.net = mlp(x_dim + c_dim, hidden, hidden, z_dim)

    def forward(self, x, c):
        mu, logvar = self.net(torch.cat([x, c], dim=-1)).chunk(2, dim=-1)
        return mu, logvar.clamp(-8, 8)


class Decoder(nn.Module):
    """p(x | z, c), Bernoulli over pixels."""

    def __init__(self, x_dim, c_dim, hidden, z_dim):
        super().__init__()
        self.net = mlp(z_dim + c_dim, hidden, hidden, x_dim)

    def forward(self, z, c):
        return self.net(torch.cat([z, c], dim=-1))


class CVAE(L.LightningModule):
    def __init__(self, x_dim=64, n_classes=10, hidden=96, z_dim=8, beta=1.0, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = Encoder(x_dim, n_classes, hidden, z_dim)
        self.decoder = Decoder(x_dim, n_classes, hidden, z_dim)

    def onehot(self, y):
        return F.one_hot(y, self.hparams.n_classes).float()

    def _elbo(self, batch):
        x, y = batch
        c = self.onehot(y)
        mu, logvar = self.encoder(x, c)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        rec = F.binary_cross_entropy_with_logits(self.decoder(z, c), x, reduction="none").sum(-1)
        kl = 0.5 * (mu ** 2 + logvar.exp() - 1 - logvar).sum(-1)
        return rec.mean(), kl.mean()

    def training_step(self, batch, batch_idx):
        rec, kl = self._elbo(batch)
        loss = rec + self.hparams.beta * kl
        self.log_dict({"rec": rec, "kl": kl, "loss": loss}, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, batch_idx):
        rec, kl = self._elbo(batch)
        self.log("val_loss", rec + kl)

    def on_validation_epoch_end(self):
        m = self.trainer.callback_metrics
        if "val_loss" in m:
            print(f"epoch {self.current_epoch}: val -ELBO {m['val_loss'].item():.2f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)

    @torch.no_grad()
    def sample(self, y):
        z = torch.randn(len(y), self.hparams.z_dim)
        return torch.sigmoid(self.decoder(z, self.onehot(y)))


def main():
    L.seed_everything(0, verbose=False)
    d = load_digits()
    x = torch.tensor(d.data / 16.0, dtype=torch.float32)
    y = torch.tensor(d.target)
    train = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=64, shuffle=True)
    val = DataLoader(TensorDataset(x[1400:], y[1400:]), batch_size=400)
    trainer = L.Trainer(max_epochs=6, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)
    model = CVAE()
    trainer.fit(model, train, val)
    print("mean pixel per class:", model.sample(torch.arange(10)).mean(1))


if __name__ == "__main__":
    main()
