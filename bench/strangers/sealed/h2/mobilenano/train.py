import argparse

import torch
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset, random_split

from nano import MobileNano


def get_loaders(batch_size, seed):
    d = load_digits()
    x = torch.tensor(d.images, dtype=torch.float32).unsqueeze(1) / 8 - 1
    ds = TensorDataset(x, torch.tensor(d.target))
    train, test = random_split(ds, [0.8, 0.2], generator=torch.Generator().manual_seed(seed))
    return DataLoader(train, batch_size, shuffle=True), DataLoader(test, 200)


def main():
    ap = argparse.ArgumentParser(description="MobileNano on 8x8 digits")
    ap.add_argument("--width", type=float, default=0.75)
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--batch-size", type=int, default=64)
    ap.add_argument("--seed", type=int, default=0)
    args = ap.parse_args()

    torch.manual_seed(args.seed)
    train, test = get_loaders(args.batch_size, args.seed)
    model = MobileNano(10, width=args.width)
    print(f"width {args.width}: {sum(p.numel() for p in model.parameters())} parameters")
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        for x, y in train:
            loss = cross_entropy(model(x), y, label_smoothing=0.05)
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            hits = sum((model(x).argmax(1) == y).sum().item() for x, y in test)
        print(f"epoch {epoch}: loss {loss.item():.3f} test {hits / len(test.dataset):.3f}")


if __name__ == "__main__":
    main()
