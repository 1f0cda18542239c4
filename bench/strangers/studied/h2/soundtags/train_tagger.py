"""Weakly labelled audio tagging with attention pooling over frames."""
import argparse

import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import average_precision_score
from torch.utils.data import DataLoader, Dataset


class ClipSet(Dataset):
    """Log-mel like patches in which every active tag occupies a few frames."""

    def __init__(self, n, n_mels=32, n_frames=40, n_tags=8, seed=0):
        rng = np.random.default_rng(seed)
        proto = np.random.default_rng(99).normal(size=(n_tags, n_mels))
        self.x = rng.normal(size=(n, n_frames, n_mels)).astype(np.float32)
        self.y = (rng.random((n, n_tags)) < 0.12).astype(np.float32)
        for i, k in zip(*np.nonzero(self.y)):
            start = rng.integers(0, n_frames - 6)
            self.x[i, start:start + 6] += 0.7 * proto[k].astype(np.float32)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i]), torch.from_numpy(self.y[i])


class AttBlock(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.att = nn.Conv1d(n_in, n_out, kernel_size=1)
        self.cla = nn.Conv1d(n_in, n_out, kernel_size=1)

    def forward(self, h):
        # h: (batch, n_in, time)
        weights = torch.softmax(torch.tanh(self.att(h)), dim=-1)
        frames = torch.sigmoid(self.cla(h))
        return (weights * frames).sum(dim=-1), frames


class Tagger(nn.Module):
    def __init__(self, n_mels, n_tags, width):
        super().__init__()
        self.bn = nn.BatchNorm1d(n_mels)
        self.encoder = nn.Sequential(
            nn.Conv1d(n_mels, width, 5, padding=2), nn.ReLU(), nn.Dropout(0.1),
            nn.Conv1d(width, width, 5, padding=2), nn.ReLU(),
        )
        self.pool = AttBlock(width, n_tags)

    def forward(self, mel):
        h = self.encoder(self.bn(mel.transpose(1, 2)))
        clip, framewise = self.pool(h)
        return {"clipwise": clip, "framewise": framewise}


@torch.no_grad()
def mean_ap(model, loader):
    model.eval()
    scores, truth = [], []
    for mel, y in loader:
        scores.append(model(mel)["clipwise"].numpy())
        truth.append(y.numpy())
    return average_precision_score(np.concatenate(truth), np.concatenate(scores), average="macro")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--batch-size", type=int, default=32)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--width", type=int, default=48)
    args = ap.parse_args()

    torch.manual_seed(1)
    train, val = ClipSet(640, seed=1), ClipSet(200, seed=2)
    train_loader = DataLoader(train, args.batch_size, shuffle=True)
    val_loader = DataLoader(val, 100)

    pos = torch.from_numpy(train.y).mean(0)
    pos_weight = ((1 - pos) / pos).sqrt()

    model = Tagger(32, 8, args.width)
    criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
    optim = torch.optim.AdamW(model.parameters(), lr=args.lr)

    for ep in range(args.epochs):
        model.train()
        losses = []
        for mel, y in train_loader:
            out = model(mel)
            loss = criterion(out["clipwise"], y)
            optim.zero_grad(set_to_none=True)
            loss.backward()
            optim.step()
            losses.append(loss.item())
        print(f"epoch {ep:02d} | loss {np.mean(losses):.4f} | mAP {mean_ap(model, val_loader):.3f}")


if __name__ == "__main__":
    main()
