import argparse
import random

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from features import ZScore, encode_categories, simulate_customers, take, to_matrix


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--customers", type=int, default=1500)
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--seed", type=int, default=7)
    return p.parse_args()


def seed_all(s):
    random.seed(s)
    np.random.seed(s)
    torch.manual_seed(s)


class ChurnNet(nn.Module):
    def __init__(self, d, h=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d, h), nn.ReLU(), nn.Dropout(0.1), nn.Linear(h, h), nn.ReLU())
        self.out = nn.Linear(h, 1)

    def forward(self, x):
        return self.out(self.body(x)).squeeze(-1)


def prepare(args):
    customers = simulate_customers(args.customers, args.seed)
    customers = encode_categories(customers)
    rows = np.arange(args.customers)
    fit_rows, held_rows = train_test_split(rows, test_size=0.25, random_state=args.seed,
                                           stratify=customers["churn"])
    fit, held = take(customers, fit_rows), take(customers, held_rows)
    z = ZScore().fit(to_matrix(fit))

    def tensors(frame):
        return TensorDataset(torch.from_numpy(z.transform(to_matrix(frame))).float(),
                             torch.from_numpy(frame["churn"]))

    return tensors(fit), tensors(held)


@torch.no_grad()
def held_out_auc(net, loader):
    net.eval()
    scores, truth = [], []
    for x, y in loader:
        scores.append(torch.sigmoid(net(x)))
        truth.append(y)
    return roc_auc_score(torch.cat(truth).numpy(), torch.cat(scores).numpy())


def main():
    args = parse()
    seed_all(args.seed)
    fit, held = prepare(args)
    fit_loader = DataLoader(fit, batch_size=args.batch, shuffle=True)
    held_loader = DataLoader(held, batch_size=256)
    net = ChurnNet(fit.tensors[0].shape[1])
    opt = torch.optim.AdamW(net.parameters(), lr=args.lr, weight_decay=1e-3)
    bce = nn.BCEWithLogitsLoss()
    for epoch in range(args.epochs):
        net.train()
        seen, acc = 0, 0.0
        for x, y in fit_loader:
            opt.zero_grad()
            loss = bce(net(x), y)
            loss.backward()
            opt.step()
            acc += loss.item() * len(y)
            seen += len(y)
        print(f"epoch {epoch}  bce {acc / seen:.4f}  held-out AUC {held_out_auc(net, held_loader):.4f}")


if __name__ == "__main__":
    main()
