import argparse

import torch
from torch.utils.data import DataLoader

from cells import cell_images
from engine import Engine
from unet_small import SmallUNet


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--train-images", type=int, default=160)
    ap.add_argument("--valid-images", type=int, default=80)
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--lr", type=float, default=5e-3)
    a = ap.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train = DataLoader(cell_images(a.train_images, seed=0), 16, shuffle=True)
    valid = DataLoader(cell_images(a.valid_images, seed=1), 16)
    model = SmallUNet().to(device)
    engine = Engine(model, torch.optim.Adam(model.parameters(), a.lr), device, classes=3)
    for epoch in range(a.epochs):
        loss = engine.train_epoch(train)
        print(f"epoch {epoch} loss {loss:.4f} valid mIoU {engine.mean_iou(valid):.4f}")


if __name__ == "__main__":
    main()
