"""
Transfer on sklearn's digits:
  1. pretrain a trunk on a cheap pretext task (which way was the picture turned?)
  2. train only a new head for the ten digits
  3. fine-tune the whole network with a small learning rate for the trunk
"""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from nets import Classifier, Trunk


def load(seed):
    x, y = load_digits(return_X_y=True)
    x = torch.tensor(x, dtype=torch.float32).view(-1, 1, 8, 8) / 16.0
    y = torch.tensor(y)
    i_tr, i_te = train_test_split(range(len(x)), test_size=0.25, stratify=y, random_state=seed)
    return (x[i_tr], y[i_tr]), (x[i_te], y[i_te])


def turned(x):
    k = torch.randint(0, 4, (len(x),))
    out = torch.stack([torch.rot90(im, int(n), (1, 2)) for im, n in zip(x, k)])
    return out, k


def run(net, opt, x, y, epochs, tag, pretext=False, bs=64):
    for ep in range(epochs):
        net.train()
        seen, total = 0, 0.0
        for idx in torch.randperm(len(x)).split(bs):
            xb, yb = turned(x[idx]) if pretext else (x[idx], y[idx])
            loss = F.cross_entropy(net(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(xb)
            seen += len(xb)
        print(f"{tag:8s} epoch {ep}  loss {total / seen:.3f}")


@torch.no_grad()
def accuracy(net, x, y):
    net.eval()
    return (net(x).argmax(1) == y).float().mean().item()


def main(seed=4):
    torch.manual_seed(seed)
    (x, y), (xt, yt) = load(seed)

    trunk = Trunk()
    pre = Classifier(trunk, 4)
    run(pre, torch.optim.Adam(pre.parameters(), lr=3e-3), x, None, 2, "pretext", pretext=True)

    net = Classifier(trunk, 10).freeze_trunk()
    run(net, torch.optim.Adam(net.head.parameters(), lr=5e-3), x, y, 3, "head")
    print(f"test accuracy with frozen trunk: {accuracy(net, xt, yt):.3f}")

    net.unfreeze_trunk()
    opt = torch.optim.Adam([
        {"params": net.trunk.parameters(), "lr": 1e-3},
        {"params": net.head.parameters(), "lr": 3e-3},
    ])
    run(net, opt, x, y, 5, "finetune")
    print(f"test accuracy after fine-tuning: {accuracy(net, xt, yt):.3f}")


if __name__ == "__main__":
    main()
