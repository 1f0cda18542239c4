import torch
from torch import nn


def generator(z, side):
    return nn.Sequential(nn.Linear(z, 256), nn.ReLU(), nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, side * side),
                         nn.Tanh(), nn.Unflatten(1, (1, side, side)))


def discriminator(side):
    return nn.Sequential(nn.Conv2d(1, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(32, 64, 4, 2, 1), nn.LeakyReLU(0.2),
                         nn.Flatten(), nn.Linear(64 * (side // 4) ** 2, 1))


def sketches(n, side=16):
    """Random strokes drawn as thick lines in [-1, 1]."""
    a = torch.rand(n, 1, 1) * 3.1416
    off = torch.rand(n, 1, 1) * 0.8 - 0.4
    g = torch.linspace(-1, 1, side)
    d = (torch.cos(a) * g[None, None, :] + torch.sin(a) * g[None, :, None] - off).abs()
    return ((d < 0.2).float() * 2 - 1)[:, None]


class SketchGan:
    def __init__(self, device, z=32, side=16, lr=2e-4, amp=True):
        self.device, self.z = device, z
        self.G = generator(z, side).to(device)
        self.D = discriminator(side).to(device)
        self.opt_g = torch.optim.Adam(self.G.parameters(), lr=lr, betas=(0.5, 0.999))
        self.opt_d = torch.optim.Adam(self.D.parameters(), lr=lr, betas=(0.5, 0.999))
        self.scaler = torch.amp.GradScaler(device.type, enabled=amp)
        self.amp = amp
        self.bce = nn.BCEWithLogitsLoss()

    def autocast(self):
        return torch.autocast(self.device.type, dtype=torch.float16, enabled=self.amp)

    def noise(self, n):
        return torch.randn(n, self.z, device=self.device)

    def descend(self, loss, optimizer, max_norm=None):
        optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        if max_norm is None:
            optimizer.step()
            return
        self.scaler.unscale_(optimizer)
        params = [p for group in optimizer.param_groups for p in group["params"]]
        nn.utils.clip_grad_norm_(params, max_norm)
        self.scaler.step(optimizer)

    def train_batch(self, real):
        n = len(real)
        with self.autocast():
            with torch.no_grad():
                fake = self.G(self.noise(n))
            out_real, out_fake = self.D(real), self.D(fake)
            loss_d = self.bce(out_real, torch.full_like(out_real, 0.9)) + self.bce(out_fake, torch.zeros_like(out_fake))
        self.descend(loss_d, self.opt_d, max_norm=5.0)

        self.D.requires_grad_(False)
        with self.autocast():
            out = self.D(self.G(self.noise(n)))
            loss_g = self.bce(out, torch.ones_like(out))
        self.descend(loss_g, self.opt_g)
        self.D.requires_grad_(True)
        self.scaler.update()
        return loss_d.detach(), loss_g.detach()


def main():
    torch.manual_seed(21)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = sketches(2048).to(device)
    gan = SketchGan(device, amp=device.type == "cuda")
    for epoch in range(2):
        d_sum = g_sum = torch.zeros((), device=device)
        batches = torch.randperm(len(data), device=device).split(64)
        for idx in batches:
            d, g = gan.train_batch(data[idx])
            d_sum, g_sum = d_sum + d, g_sum + g
        print(f"epoch {epoch} D {d_sum.item() / len(batches):.3f} G {g_sum.item() / len(batches):.3f}")
    torch.save(gan.G.state_dict(), "generator.pt")


if __name__ == "__main__":
    main()
