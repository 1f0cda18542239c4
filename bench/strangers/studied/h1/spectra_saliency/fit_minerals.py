"""Classify mineral spectra and keep track of the wavelengths that the net relies on."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from diagnostics import RunningProfile, channel_sensitivity
from minerals import PEAKS, sample_spectra


def fit(model, train_loader, test, epochs, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    criterion = nn.CrossEntropyLoss()
    profile = RunningProfile(test[0].shape[1])
    for epoch in range(epochs):
        model.train()
        epoch_loss = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            profile.update(channel_sensitivity(model, x, y))
            optimizer.step()
            epoch_loss += loss.item()
        model.eval()
        with torch.no_grad():
            acc = (model(test[0]).argmax(1) == test[1]).float().mean().item()
        print(f"epoch {epoch:2d}  loss {epoch_loss / len(train_loader):.4f}  acc {acc:.3f}  "
              f"important bins {profile.top()}")


def main():
    torch.manual_seed(12)
    model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, len(PEAKS)))
    loader = DataLoader(TensorDataset(*sample_spectra(1200, seed=0)), batch_size=50, shuffle=True)
    fit(model, loader, sample_spectra(400, seed=1), epochs=8, lr=2e-3)


if __name__ == "__main__":
    main()
