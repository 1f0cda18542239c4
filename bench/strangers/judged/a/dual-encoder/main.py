import argparse

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from clipette import DualEncoder, PairStream


def symmetric_ce(per_image, per_text):
    target = torch.arange(len(per_image), device=per_image.device)
    return 0.5 * (F.cross_entropy(per_image, target) + F.cross_entropy(per_text, target))


def recall_at_1(model, loader):
    was_training = model.training
    model.eval()
    hits = n = 0
    with torch.inference_mode():
        for img, tok in loader:
            per_image, _ = model(img, tok)
            hits += (per_image.argmax(1) == torch.arange(len(img))).sum().item()
            n += len(img)
    model.train(was_training)
    return hits / n


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--batch-size", type=int, default=64)
    ap.add_argument("--lr", type=float, default=2e-3)
    args = ap.parse_args()

    torch.manual_seed(17)
    train_set, test_set = PairStream(1024, seed=100), PairStream(256, seed=900_000)
    test_dl = DataLoader(test_set, args.batch_size)
    model = DualEncoder()
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)

    for epoch in range(args.epochs):
        train_set.epoch = epoch
        running = count = 0
        for img, tok in DataLoader(train_set, args.batch_size):
            loss = symmetric_ce(*model(img, tok))
            opt.zero_grad()
            loss.backward()
            opt.step()
            with torch.no_grad():
                model.logit_scale.clamp_(0, 4.6052)
            running += loss.item()
            count += 1
        print(f"[{epoch}] loss={running / count:.3f} scale={model.logit_scale.exp().item():.2f} R@1={recall_at_1(model, test_dl):.3f}")
