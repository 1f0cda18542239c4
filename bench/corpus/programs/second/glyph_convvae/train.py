#!/usr/bin/env python
"""Train the convolutional VAE on the 8x8 scikit-learn digits."""
import csv
import os

import torch
import yaml
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

from vae import ConvVAE, elbo_terms


class VAETrainer:
    def __init__(self, cfg, seed):
        self.cfg = cfg["train"]
        torch.manual_seed(seed)

        images = torch.tensor(load_digits().images, dtype=torch.float32).unsqueeze(1) / 16.0
        train_x, val_x = train_test_split(images, test_size=cfg["data"]["val_size"], random_state=seed)
        self.train_dl = DataLoader(
            TensorDataset(train_x), batch_size=self.cfg["batch_size"], shuffle=True, drop_last=True
        )
        self.val_dl = DataLoader(TensorDataset(val_x), batch_size=256)

        self.model = ConvVAE(**cfg["model"])
        self.opt = torch.optim.Adam(self.model.parameters(), lr=self.cfg["lr"])
        self.sched = torch.optim.lr_scheduler.StepLR(self.opt, step_size=5, gamma=0.5)
        self.global_step = 0

    def beta(self):
        """KL weight: linear from 0 to kl_max over the warm-up epochs."""
        warm = self.cfg["kl_warmup_epochs"] * len(self.train_dl)
        return self.cfg["kl_max"] * min(1.0, self.global_step / warm)

    def train_epoch(self):
        self.model.train()
        sums = torch.zeros(3)
        for (x,) in self.train_dl:
            self.opt.zero_grad()
            logits, mu, logvar = self.model(x)
            rec, kl = elbo_terms(logits, x, mu, logvar)
            loss = rec + self.beta() * kl
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg["grad_clip"])
            self.opt.step()
            self.global_step += 1
            sums += torch.tensor([loss.item(), rec.item(), kl.item()])
        return (sums / len(self.train_dl)).tolist()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        rec_sum, kl_sum, n = 0.0, 0.0, 0
        for (x,) in self.val_dl:
            mu, logvar = self.model.encode(x)
            # one proper sample from the posterior for the bound, with its own fixed noise
            g = torch.Generator().manual_seed(1234)
            z = mu + torch.exp(0.5 * logvar) * torch.randn(mu.shape, generator=g)
            rec, kl = elbo_terms(self.model.decode(z), x, mu, logvar)
            rec_sum += rec.item() * len(x)
            kl_sum += kl.item() * len(x)
            n += len(x)
        return rec_sum / n, kl_sum / n

    def fit(self):
        with open("history.csv", "w", newline="") as f:
            writer = csv.writer(f)
            writer.writerow(["epoch", "beta", "loss", "rec", "kl", "val_rec", "val_kl", "val_neg_elbo"])
            rec, kl = self.validate()
            print(f"epoch  0 (untrained) val -ELBO {rec + kl:.3f}")
            for epoch in range(1, self.cfg["epochs"] + 1):
                loss, trec, tkl = self.train_epoch()
                self.sched.step()
                rec, kl = self.validate()
                writer.writerow([epoch, self.beta(), loss, trec, tkl, rec, kl, rec + kl])
                print(
                    f"epoch {epoch:2d} beta {self.beta():.2f} loss {loss:.3f} (rec {trec:.3f} kl {tkl:.3f}) "
                    f"val rec {rec:.3f} kl {kl:.3f} -ELBO {rec + kl:.3f}"
                )
        torch.save(
            {"model": self.model.state_dict(), "optimizer": self.opt.state_dict(), "epoch": self.cfg["epochs"]},
            "vae.pt",
        )
        return rec + kl


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "config.yaml")) as f:
        config = yaml.safe_load(f)
    trainer = VAETrainer(config, seed=int(os.environ.get("SEED", 0)))
    print(f"final val negative ELBO: {trainer.fit():.3f}")
