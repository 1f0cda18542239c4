import argparse
import math

import torch
from torch.utils.data import DataLoader, TensorDataset, random_split

from geometry import euler_to_matrix, geodesic_distance
from model import PoseNet


def synthetic_faces(n, n_landmarks=68, seed=0):
    g = torch.Generator().manual_seed(seed)
    template = torch.randn(n_landmarks, 3, generator=g)
    angles = (torch.rand(n, 3, generator=g) - 0.5) * math.radians(120)
    # a quarter of the set are the frontal captures of the studio session
    angles[: n // 4] = 0.0
    rot = euler_to_matrix(angles[:, 0], angles[:, 1], angles[:, 2])
    pts = torch.einsum("nij,lj->nli", rot, template)[..., :2]
    pts = pts + 0.02 * torch.randn(pts.shape, generator=g)
    return pts, rot


def evaluate(model, loader):
    model.eval()
    errs = []
    with torch.no_grad():
        for pts, rot in loader:
            errs.append(geodesic_distance(model(pts), rot))
    return math.degrees(torch.cat(errs).mean().item())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=8)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--batch-size", type=int, default=64)
    args = ap.parse_args()

    torch.manual_seed(0)
    pts, rot = synthetic_faces(2000)
    train, val = random_split(TensorDataset(pts, rot), [1600, 400])
    train_loader = DataLoader(train, batch_size=args.batch_size, shuffle=True)
    val_loader = DataLoader(val, batch_size=256)

    model = PoseNet()
    optim = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-4)
    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        for x, r in train_loader:
            loss = geodesic_distance(model(x), r).mean()
            optim.zero_grad()
            loss.backward()
            optim.step()
            running += loss.item() * len(x)
        print(f"epoch {epoch:02d} train {running / len(train):.4f} rad  val {evaluate(model, val_loader):.2f} deg")


if __name__ == "__main__":
    main()
