"""Linear probe + light fine-tuning on a frozen autoencoder.  Lab protocol: features are computed once and cached."""
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
raw = load_digits()
X = torch.tensor(raw.data / 16.0, dtype=torch.float32)
Y = torch.tensor(raw.target)
perm = torch.randperm(len(X))
unlab, lab, test = perm[:1200], perm[1200:1350], perm[1350:]


def pretrain(epochs=25):
    enc = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 32))
    dec = nn.Sequential(nn.ReLU(), nn.Linear(32, 64))
    opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=2e-3)
    for _ in range(epochs):
        for idx in unlab[torch.randperm(len(unlab))].split(64):
            loss = F.mse_loss(dec(enc(X[idx])), X[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    print(f"reconstruction {loss.item():.4f}")
    return enc


@torch.no_grad()
def extract(encoder, idx):
    encoder.eval()
    return encoder(X[idx])


def linear_probe(encoder, steps=400):
    feats, labels = extract(encoder, lab), Y[lab]
    test_feats = extract(encoder, test)
    head = nn.Linear(32, 10)
    opt = torch.optim.AdamW(head.parameters(), lr=1e-2, weight_decay=1e-2)
    for _ in range(steps):
        # 150 samples fit into a single batch
        loss = F.cross_entropy(head(feats), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        acc = (head(test_feats).argmax(1) == Y[test]).float().mean().item()
    return head, acc


def tune_last_layer(encoder, head, steps=150):
    """only the last encoder layer moves; batch norm and dropout stay in inference mode"""
    encoder.requires_grad_(False)
    encoder[-1].requires_grad_(True)
    encoder.eval()
    trainable = [p for m in (encoder, head) for p in m.parameters() if p.requires_grad]
    opt = torch.optim.AdamW(trainable, lr=5e-4)
    head.train()
    for _ in range(steps):
        loss = F.cross_entropy(head(encoder(X[lab])), Y[lab])
        opt.zero_grad()
        loss.backward()
        opt.step()
    head.eval()
    with torch.no_grad():
        return (head(encoder(X[test])).argmax(1) == Y[test]).float().mean().item()


if __name__ == "__main__":
    encoder = pretrain()
    head, acc = linear_probe(encoder)
    print(f"linear probe {acc:.3f}")
    print(f"last layer tuned {tune_last_layer(encoder, head):.3f}")
