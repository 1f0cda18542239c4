import os
import random
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from simclr import Encoder, TwoViews, nt_xent
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader

EPOCHS = 8
BATCH_SIZE = 128
BASE_LR = 3e-3
TEMPERATURE = 0.2


def load_data(seed):
    digits = load_digits()
    images = torch.tensor(digits.images / 8.0 - 1.0, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(digits.target)
    order = torch.from_numpy(np.random.RandomState(seed).permutation(len(images)))
    images, labels = images[order], labels[order]
    return (images[:1400], labels[:1400]), (images[1400:], labels[1400:])


@torch.no_grad()
def embed(encoder, images):
    encoder.eval()
    features = encoder(images)[0].numpy()
    encoder.train()
    return features


def linear_probe(encoder, train, test, n_labelled=100):
    """Accuracy of a linear classifier on frozen features, few labels."""
    clf = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    clf.fit(embed(encoder, train[0][:n_labelled]), train[1][:n_labelled].numpy())
    return clf.score(embed(encoder, test[0]), test[1].numpy())


@torch.no_grad()
def match_views(encoder, loader):
    """How often the other view of an image is its nearest neighbour in the batch."""
    encoder.eval()
    hits, count = 0, 0
    for view1, view2 in loader:
        z1 = F.normalize(encoder(view1)[1], dim=1)
        z2 = F.normalize(encoder(view2)[1], dim=1)
        nearest = (z1 @ z2.t()).argmax(dim=1)
        hits += (nearest == torch.arange(len(z1))).sum().item()
        count += len(z1)
    encoder.train()
    return hits / count


def main():
    seed = int(os.environ.get("SEED", "0"))
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)

    train, test = load_data(seed)
    loader = DataLoader(TwoViews(train[0]), batch_size=BATCH_SIZE, shuffle=True, drop_last=True)
    val_loader = DataLoader(TwoViews(test[0]), batch_size=BATCH_SIZE)

    encoder = Encoder()
    optim = torch.optim.AdamW(encoder.parameters(), lr=BASE_LR, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(optim, T_max=EPOCHS * len(loader))

    print("epoch,step,lr,contrastive_loss,val_top1,probe_acc")
    step = 0
    for epoch in range(EPOCHS):
        epoch_loss = 0.0
        for view1, view2 in loader:
            _, z1 = encoder(view1)
            _, z2 = encoder(view2)
            loss = nt_xent(z1, z2, TEMPERATURE)
            optim.zero_grad()
            loss.backward()
            optim.step()
            sched.step()
            step += 1
            epoch_loss += loss.item()
        top1 = match_views(encoder, val_loader)
        acc = linear_probe(encoder, train, test)
        print(
            f"{epoch},{step},{sched.get_last_lr()[0]:.6f},{epoch_loss / len(loader):.4f},"
            f"{top1:.4f},{acc:.4f}"
        )

    Path("checkpoints").mkdir(exist_ok=True)
    torch.save({"encoder": encoder.state_dict(), "epoch": EPOCHS}, "checkpoints/encoder.pt")


if __name__ == "__main__":
    main()
