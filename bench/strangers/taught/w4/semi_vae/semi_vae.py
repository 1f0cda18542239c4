# Homework 4: VAE with an auxiliary digit classifier on the latent code (sklearn digits)
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

torch.manual_seed(0)

X, y = load_digits(return_X_y=True)
X = X / 16.0
X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
to_t = lambda a: torch.tensor(a, dtype=torch.float32)
train_dl = DataLoader(TensorDataset(to_t(X_tr), torch.tensor(y_tr)), batch_size=64, shuffle=True)
test_dl = DataLoader(TensorDataset(to_t(X_te), torch.tensor(y_te)), batch_size=256)


class VAE(nn.Module):
    def __init__(self, latent=10):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU())
        self.mu = nn.Linear(64, latent)
        self.logvar = nn.Linear(64, latent)
        self.dec = nn.Sequential(nn.Linear(latent, 64), nn.ReLU(), nn.Linear(64, 128), nn.ReLU(),
                                 nn.Linear(128, 64))

    def encode(self, x):
        h = self.enc(x)
        return self.mu(h), self.logvar(h)

    def reparameterize(self, mu, logvar):
        return mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)


vae = VAE()
clf = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 10))

# slower learning rate for the classifier, otherwise it dominates the latent space
opt_vae = torch.optim.Adam(vae.parameters(), lr=1e-3)
opt_clf = torch.optim.Adam(clf.parameters(), lr=3e-4)


def elbo(x, logits, mu, logvar):
    rec = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return (rec + kl) / x.size(0)


def test():
    vae.eval(); clf.eval()
    loss, hits, n = 0.0, 0, 0
    with torch.no_grad():
        for x, y in test_dl:
            mu, logvar = vae.encode(x)
            loss += elbo(x, vae.dec(mu), mu, logvar).item() * len(x)
            hits += (clf(mu).argmax(1) == y).sum().item()
            n += len(x)
    return loss / n, hits / n


for epoch in range(30):
    vae.train(); clf.train()
    for x, y in train_dl:
        mu, logvar = vae.encode(x)
        z = vae.reparameterize(mu, logvar)

        opt_vae.zero_grad()
        opt_clf.zero_grad()

        vae_loss = elbo(x, vae.dec(z), mu, logvar)
        vae_loss.backward()

        clf_loss = 5.0 * F.cross_entropy(clf(z), y)
        clf_loss.backward()

        opt_vae.step()
        opt_clf.step()

    te_loss, te_acc = test()
    print("epoch %2d  -elbo %.2f  acc %.3f" % (epoch, te_loss, te_acc))
