"""VAE on 8x8 digits with an averaged copy of the weights for sampling."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from sklearn.datasets import load_digits

torch.manual_seed(0)
x_all = torch.tensor(load_digits().data, dtype=torch.float32) / 16
x_train, x_test = x_all[:1500], x_all[1500:]


class VAE(nn.Module):
    def __init__(self, z=8):
        super().__init__()
        self.fc1 = nn.Linear(64, 128)
        self.fc21 = nn.Linear(128, z)
        self.fc22 = nn.Linear(128, z)
        self.fc3 = nn.Linear(z, 128)
        self.fc4 = nn.Linear(128, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar, beta):
    bce = F.binary_cross_entropy(recon_x, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return (bce + beta * kld) / x.size(0)


model = VAE()
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(1, 21):
    model.train()
    beta = min(1.0, epoch / 10)
    total = 0.0
    for idx in torch.randperm(len(x_train)).split(64):
        batch = x_train[idx]
        optimizer.zero_grad()
        recon, mu, logvar = model(batch)
        loss = loss_function(recon, batch, mu, logvar, beta)
        loss.backward()
        optimizer.step()
        ema.update_parameters(model)
        total += loss.item() * len(batch)
    if epoch % 5 == 0:
        ema.eval()
        with torch.no_grad():
            recon, mu, logvar = ema(x_test)
            test = loss_function(recon, x_test, mu, logvar, 1.0)
        print(f"epoch {epoch} train {total / len(x_train):.3f} test elbo {test.item():.3f}")

with torch.no_grad():
    samples = ema.module.decode(torch.randn(4, 8)).view(4, 8, 8)
for row in samples[0]:
    print("".join(" .:#"[min(3, int(v * 4))] for v in row))
