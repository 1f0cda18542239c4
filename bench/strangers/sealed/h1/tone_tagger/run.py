import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from engine import BaseTrainer
from tones import NOTES, synth


class ToneNet(nn.Module):
    def __init__(self, n_out):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 16, 33, stride=4), nn.BatchNorm1d(16), nn.ReLU(),
            nn.Conv1d(16, 32, 9, stride=2), nn.BatchNorm1d(32), nn.ReLU(),
            nn.AdaptiveAvgPool1d(1), nn.Flatten())
        self.out = nn.Linear(32, n_out)

    def forward(self, wave):
        return self.out(self.features(wave))


class ToneTrainer(BaseTrainer):
    def __init__(self, *args, valid, **kwargs):
        super().__init__(*args, **kwargs)
        self.valid = valid
        self.smoothed = None

    def compute_loss(self, batch):
        wave, label = batch
        return F.cross_entropy(self.model(wave), label)

    def after_batch(self, loss):
        value = loss.item()
        self.smoothed = value if self.smoothed is None else 0.95 * self.smoothed + 0.05 * value

    def after_epoch(self, epoch):
        self.model.eval()
        wave, label = self.valid
        with torch.no_grad():
            acc = (self.model(wave).argmax(1) == label).float().mean().item()
        print(f"[{epoch}] smoothed loss {self.smoothed:.3f}  valid acc {acc:.3f}")


def main():
    torch.manual_seed(3)
    loader = DataLoader(TensorDataset(*synth(1200, 0)), batch_size=40, shuffle=True)
    model = ToneNet(len(NOTES))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    trainer = ToneTrainer(model, optimizer, peak_lr=2e-3, valid=synth(300, 1))
    trainer.fit(loader, epochs=5)


if __name__ == "__main__":
    main()
