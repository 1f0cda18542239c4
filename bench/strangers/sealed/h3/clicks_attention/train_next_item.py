import argparse

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from layers import NextItem
from sessions import click_sessions


@torch.no_grad()
def hit_rate(model, loader, device, k=5):
    model.eval()
    hits = seen = 0
    for seq in loader:
        seq = seq.to(device, non_blocking=True)
        top = model(seq[:, :-1])[:, -1].topk(k).indices
        hits += (top == seq[:, -1:]).any(-1).sum()
        seen += len(seq)
    return hits.item() / seen


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--items", type=int, default=60)
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = p.parse_args()
    torch.manual_seed(0)

    train = DataLoader(click_sessions(640, 17, args.items, 1), batch_size=40, shuffle=True)
    valid = DataLoader(click_sessions(200, 17, args.items, 2), batch_size=100)
    model = NextItem(args.items).to(args.device)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        for seq in train:
            seq = seq.to(args.device, non_blocking=True)
            logits = model(seq[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), seq[:, 1:].flatten())
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        print(f"epoch {epoch} last loss {loss.item():.3f} hit@5 {hit_rate(model, valid, args.device):.3f}")


if __name__ == "__main__":
    main()
