import os
import random
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class ConvAutoencoder(nn.Module):
    def __init__(self, bottleneck=24):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1),  # 4x4
            nn.LeakyReLU(0.1),
            nn.Conv2d(8, 16, 3, stride=2, padding=1),  # 2x2
            nn.LeakyReLU(0.1),
            nn.Flatten(),
            nn.Linear(64, bottleneck),
        )
        self.decoder = nn.Sequential(
            nn.Linear(bottleneck, 64),
            nn.LeakyReLU(0.1),
            nn.Unflatten(1, (16, 2, 2)),
            nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1),
            nn.LeakyReLU(0.1),
            nn.ConvTranspose2d(8, 1, 4, stride=2, padding=1),
            nn.Sigmoid(),
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


class Trainer:
    def __init__(
        self, model, optimizer, train_loader, valid_loader, noise=0.3, ckpt_dir="checkpoints"
    ):
        self.model = model
        self.optimizer = optimizer
        self.train_loader = train_loader
        self.valid_loader = valid_loader
        self.noise = noise
        self.criterion = nn.MSELoss()
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.93)
        self.ckpt_dir = Path(ckpt_dir)
        self.ckpt_dir.mkdir(exist_ok=True)
        self.best = float("inf")
        self.history = {"train": [], "valid": []}

    def corrupt(self, clean):
        return (clean + self.noise * torch.randn_like(clean)).clamp(0, 1)

    def _train_epoch(self):
        self.model.train()
        total = 0.0
        for (clean,) in self.train_loader:
            reconstruction = self.model(self.corrupt(clean))
            loss = self.criterion(reconstruction, clean)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.no_grad()
    def _valid_epoch(self):
        self.model.eval()
        total = 0.0
        for (clean,) in self.valid_loader:
            total += self.criterion(self.model(self.corrupt(clean)), clean).item()
        return total / len(self.valid_loader)

    def _save(self, name, epoch):
        torch.save(
            {
                "epoch": epoch,
                "model_state_dict": self.model.state_dict(),
                "optimizer_state_dict": self.optimizer.state_dict(),
                "history": self.history,
            },
            self.ckpt_dir / name,
        )

    def fit(self, epochs):
        for epoch in range(1, epochs + 1):
            train_mse = self._train_epoch()
            valid_mse = self._valid_epoch()
            self.scheduler.step()
            self.history["train"].append(train_mse)
            self.history["valid"].append(valid_mse)
            psnr = -10 * np.log10(valid_mse)
            marker = ""
            if valid_mse < self.best:
                self.best = valid_mse
                self._save("best.pt", epoch)
                marker = " *"
            print(
                f"Epoch: {epoch:03d} | Train MSE: {train_mse:.5f} | "
                f"Valid MSE: {valid_mse:.5f} | PSNR: {psnr:.2f} dB{marker}"
            )
        self._save("last.pt", epochs)


def main():
    seed = int(os.environ.get("SEED", "0"))
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)

    images = torch.tensor(load_digits().images / 16.0, dtype=torch.float32).unsqueeze(1)
    train_set, valid_set = random_split(TensorDataset(images), [1500, 297])
    net = ConvAutoencoder()
    trainer = Trainer(
        model=net,
        optimizer=torch.optim.NAdam(net.parameters(), lr=4e-3),
        train_loader=DataLoader(train_set, batch_size=50, shuffle=True),
        valid_loader=DataLoader(valid_set, batch_size=99),
    )
    trainer.fit(epochs=16)


if __name__ == "__main__":
    main()
