import argparse

import torch
from torch.utils.data import DataLoader

from layers import PeptideNet
from peptides import AA, collate, simulate


def evaluate(net, rows, batch):
    net.eval()
    preds, ys = [], []
    with torch.no_grad():
        for ids, mask, y in DataLoader(rows, batch, collate_fn=collate):
            preds.append(net(ids, mask))
            ys.append(y)
    p, y = torch.cat(preds), torch.cat(ys)
    return torch.corrcoef(torch.stack([p, y]))[0, 1].item(), (p - y).abs().mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--lr", type=float, default=2e-3)
    a = ap.parse_args()
    torch.manual_seed(0)
    train, test = simulate(800, 0), simulate(200, 1)
    net = PeptideNet(len(AA) + 1)
    opt = torch.optim.AdamW(net.parameters(), lr=a.lr, weight_decay=0.01)
    for epoch in range(a.epochs):
        net.train()
        for ids, mask, y in DataLoader(train, a.batch, shuffle=True, collate_fn=collate):
            loss = torch.nn.functional.mse_loss(net(ids, mask), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        r, mae = evaluate(net, test, a.batch)
        r1, mae1 = evaluate(net, test, 1)
        print(f"epoch {epoch} loss {loss.item():.4f} | batched r {r:.3f} mae {mae:.4f} | one by one r {r1:.3f} mae {mae1:.4f}")


if __name__ == "__main__":
    main()
