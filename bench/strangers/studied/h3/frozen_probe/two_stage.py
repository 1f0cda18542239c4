import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.metrics import f1_score

torch.manual_seed(3)
DEV = "cuda" if torch.cuda.is_available() else "cpu"

X, y = load_digits(return_X_y=True)
X = torch.tensor(X / 16.0, dtype=torch.float32, device=DEV)
y = torch.tensor(y, device=DEV)
order = torch.randperm(len(X), device=DEV)
unlab, lab, test = order[:1200], order[1200:1400], order[1400:]


class Encoder(nn.Module):
    def __init__(self, code=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, code))

    def forward(self, x):
        return self.net(x)


def pretrain(encoder, epochs=12):
    """denoising autoencoder on the unlabelled images"""
    decoder = nn.Sequential(nn.ReLU(), nn.Linear(24, 96), nn.ReLU(), nn.Linear(96, 64)).to(DEV)
    opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
    for ep in range(epochs):
        for idx in unlab[torch.randperm(len(unlab), device=DEV)].split(64):
            clean = X[idx]
            noisy = clean * (torch.rand_like(clean) > 0.2)
            loss = nn.functional.mse_loss(decoder(encoder(noisy)), clean)
            opt.zero_grad()
            loss.backward()
            opt.step()
    print(f"reconstruction loss {loss.item():.4f}")


class Probe(nn.Module):
    def __init__(self, encoder, classes=10):
        super().__init__()
        self.encoder = encoder.requires_grad_(False).eval()
        self.norm = nn.BatchNorm1d(24, affine=False)
        self.linear = nn.Linear(24, classes)

    def train(self, mode=True):
        super().train(mode)
        self.encoder.eval()
        return self

    @torch.no_grad()
    def features(self, x):
        return self.encoder(x)

    def forward(self, x):
        return self.linear(self.norm(self.features(x)))


encoder = Encoder().to(DEV)
pretrain(encoder)
before = torch.cat([p.flatten() for p in encoder.parameters()]).clone()

probe = Probe(encoder).to(DEV)
trainable = [p for p in probe.parameters() if p.requires_grad]
print("trainable tensors:", len(trainable))
opt = torch.optim.Adam(trainable, lr=2e-2, weight_decay=1e-4)
for ep in range(15):
    probe.train()
    for idx in lab[torch.randperm(len(lab), device=DEV)].split(40):
        loss = nn.functional.cross_entropy(probe(X[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    if ep % 5 == 4:
        probe.eval()
        with torch.no_grad():
            guess = probe(X[test]).argmax(1).cpu().numpy()
        print(f"epoch {ep + 1} macro F1 {f1_score(y[test].cpu().numpy(), guess, average='macro'):.3f}")

after = torch.cat([p.flatten() for p in encoder.parameters()])
print("encoder untouched:", bool(np.array_equal(before.detach().cpu(), after.detach().cpu())))
