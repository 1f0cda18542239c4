import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

from cvae import ConditionalVAE, elbo

torch.manual_seed(42)


def load():
    d = load_digits()
    x = torch.tensor(d.data / 16.0, dtype=torch.float32)
    y = torch.tensor(d.target)
    a, b, c, e = train_test_split(x, y, test_size=0.2, random_state=42, stratify=y)
    return TensorDataset(a, c), TensorDataset(b, e)


def beta_at(epoch, warmup=4):
    return min(1.0, (epoch + 1) / warmup)


train_ds, test_ds = load()
loaders = {
    "train": DataLoader(train_ds, batch_size=64, shuffle=True),
    "test": DataLoader(test_ds, batch_size=128),
}
vae = ConditionalVAE(x_dim=64, n_cond=10)
optimizer = torch.optim.Adam(vae.parameters(), lr=2e-3)

for epoch in range(8):
    vae.train()
    for x, c in loaders["train"]:
        recon, mu, logvar = vae(x, c)
        loss = elbo(recon, x, mu, logvar, beta_at(epoch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    vae.eval()
    total = 0.0
    with torch.no_grad():
        for x, c in loaders["test"]:
            recon, mu, logvar = vae(x, c)
            total += elbo(recon, x, mu, logvar).item() * len(x)
    print(f"epoch {epoch}: test -ELBO {total / len(test_ds):.2f}")

grid = vae.sample(torch.arange(10))
print("samples", tuple(grid.shape), float(grid.min()), float(grid.max()))
