# Pollen grains: pretrain on the big 8-class set, then move to the small 4-class set.
import numpy as np
import torch
from torch import nn
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

torch.manual_seed(7)


def tables(n_samples, n_classes, seed):
    X, y = make_classification(n_samples, n_features=24, n_informative=14, n_classes=n_classes,
                               n_clusters_per_class=1, class_sep=1.3, random_state=seed)
    X = (X - X.mean(0)) / X.std(0)
    Xa, Xb, ya, yb = train_test_split(X.astype("float32"), y, test_size=0.25, random_state=0)
    return [torch.from_numpy(a) for a in (Xa, ya, Xb, yb)]


def make_net(n_features, n_classes):
    return nn.Sequential(
        nn.Linear(n_features, 96),
        nn.BatchNorm1d(96),
        nn.ReLU(),
        nn.Linear(96, 48),
        nn.ReLU(),
        nn.Linear(48, n_classes),
        nn.LogSoftmax(dim=1),
    )


def replace_head(net, n_classes):
    """Keep everything below the classifier and put a fresh classifier on top."""
    body = list(net.children())[:-2]
    width = body[-2].out_features
    for layer in body[:3]:
        for p in layer.parameters():
            p.requires_grad = False
    return nn.Sequential(*body, nn.Linear(width, n_classes))


def fit(net, data, epochs, lr, tag):
    Xa, ya, Xb, yb = data
    nll = nn.NLLLoss()
    opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=lr, momentum=0.9)
    for epoch in range(1, epochs + 1):
        net.train()
        order = torch.randperm(len(Xa))
        epoch_loss = 0.0
        for idx in order.split(64):
            opt.zero_grad()
            out = net(Xa[idx])
            loss = nll(out, ya[idx])
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            opt.step()
            epoch_loss += loss.item() * len(idx)
        net.eval()
        with torch.no_grad():
            acc = (net(Xb).argmax(1) == yb).float().mean().item()
        if epoch % 3 == 0:
            print(f"[{tag}] epoch {epoch:2d}  loss {epoch_loss / len(Xa):9.4f}  test acc {acc:.3f}")
    return net


source = tables(2400, 8, seed=11)
target = tables(500, 4, seed=12)

base = make_net(24, 8)
fit(base, source, epochs=9, lr=0.05, tag="source")

small = replace_head(base, 4)
print("trainable:", sum(p.numel() for p in small.parameters() if p.requires_grad))
fit(small, target, epochs=12, lr=0.02, tag="target")
