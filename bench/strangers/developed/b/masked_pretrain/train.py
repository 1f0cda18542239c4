"""Pretrain on unlabelled digits (masked autoencoder, EMA weights), then fine-tune on 100 labelled ones."""
import argparse
import os
import tempfile

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

from nets import Classifier, Encoder
from pretrain import pretrain


def split():
    d = load_digits()
    x, y = torch.tensor(d.data / 16.0, dtype=torch.float32), torch.tensor(d.target)
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(12))
    x, y = x[order], y[order]
    return x[:1300], y[:1300], x[1300:], y[1300:]


def load_pretrained(net, path):
    """Takes over everything that fits; the decoder is not needed and the head is new, hence not strict."""
    weights = torch.load(path, weights_only=True)["weights"]
    weights = {k.removeprefix("_orig_mod."): v for k, v in weights.items() if "decoder" not in k}
    net.load_state_dict(weights, strict=False)
    print(f"loaded pretrained encoder from {os.path.basename(path)} ({len(weights)} tensors)")
    return net


def finetune(net, x, y, xt, yt, epochs=30, bs=20):
    opt = torch.optim.AdamW(
        [{"params": net.encoder.parameters(), "lr": 3e-4}, {"params": net.head.parameters(), "lr": 3e-3}],
        weight_decay=0.01,
    )
    for ep in range(epochs):
        net.train()
        for idx in torch.randperm(len(x)).split(bs):
            opt.zero_grad()
            F.cross_entropy(net(x[idx]), y[idx]).backward()
            opt.step()
    net.eval()
    with torch.no_grad():
        return (net(xt).argmax(1) == yt).float().mean().item()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--weights", help="skip pretraining and use this file")
    p.add_argument("--labels", type=int, default=100)
    a = p.parse_args()
    torch.manual_seed(12)
    x, y, xt, yt = split()
    path = a.weights
    if path is None:
        path = os.path.join(tempfile.mkdtemp(), "mae.pt")
        pretrain(x, path)
    net = load_pretrained(Classifier(Encoder()), path)
    print(f"test accuracy with {a.labels} labels: {finetune(net, x[:a.labels], y[:a.labels], xt, yt):.3f}")
