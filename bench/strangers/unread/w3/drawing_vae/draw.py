import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn, Tensor


class StrokeVAE(nn.Module):
    """Paints a digit in a few strokes on one canvas, from a single latent."""

    def __init__(self, pixels: int = 64, hidden: int = 96, latent: int = 12, strokes: int = 4):
        super().__init__()
        self.strokes = strokes
        self.enc = nn.Sequential(nn.Linear(pixels, hidden), nn.ReLU())
        self.mu, self.logvar = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.start = nn.Linear(latent, hidden)
        self.cell = nn.GRUCell(pixels + latent, hidden)
        self.paint = nn.Linear(hidden, pixels)

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.enc(x)
        return self.mu(h), self.logvar(h)

    def decode(self, z: Tensor) -> list[Tensor]:
        h = torch.tanh(self.start(z))
        canvas = z.new_zeros(z.size(0), self.paint.out_features)
        frames = []
        for _ in range(self.strokes):
            h = self.cell(torch.cat([torch.sigmoid(canvas), z], dim=1), h)
            canvas = canvas + self.paint(h)
            frames.append(canvas.detach())
        return frames

    def forward(self, x: Tensor):
        mu, logvar = self.encode(x)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.decode(z), mu, logvar


def elbo(frames, x, mu, logvar):
    rec = F.binary_cross_entropy_with_logits(frames[-1], x, reduction="none").sum(1)
    kl = -0.5 * (1 + logvar - mu.square() - logvar.exp()).sum(1)
    return (rec + kl).mean(), rec.mean(), kl.mean()


def main() -> None:
    torch.manual_seed(77)
    x = torch.tensor(load_digits().data / 16.0, dtype=torch.float32)
    x = x[torch.randperm(len(x))]
    train, test = x[:1500], x[1500:]
    vae = StrokeVAE()
    opt = torch.optim.Adam(vae.parameters(), lr=2e-3)
    for epoch in range(8):
        vae.train()
        for batch in train[torch.randperm(len(train))].split(50):
            frames, mu, logvar = vae(batch)
            loss = elbo(frames, batch, mu, logvar)[0]
            opt.zero_grad()
            loss.backward()
            opt.step()
        vae.eval()
        with torch.no_grad():
            frames, mu, logvar = vae(test)
            total, rec, kl = elbo(frames, test, mu, logvar)
        print(f"epoch {epoch}: -elbo {total.item():.3f} = rec {rec.item():.3f} + kl {kl.item():.3f}")


if __name__ == "__main__":
    main()
