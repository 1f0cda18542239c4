# small DCGAN for 16x16 icons. Stop with ctrl-c whenever, start again and it goes on from the file.
import os
import sys
import torch
import torch.nn as nn

CKPT = sys.argv[1] if len(sys.argv) > 1 else "/tmp/w3_icons_gan.pt"
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 60
NZ, BS = 32, 32


def real_icons(n):
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, 16), torch.linspace(-1, 1, 16), indexing="ij")
    c = torch.rand(n, 2, 1, 1) - 0.5
    r = 0.3 + 0.4 * torch.rand(n, 1, 1)
    disc = ((xx - c[:, 0]) ** 2 + (yy - c[:, 1]) ** 2).sqrt() < r
    return disc.float().unsqueeze(1) * 2 - 1


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(NZ, 32, 4, 1, 0, bias=False), nn.BatchNorm2d(32), nn.ReLU(True),
            nn.ConvTranspose2d(32, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
            nn.ConvTranspose2d(16, 1, 4, 2, 1), nn.Tanh())

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, 16, 4, 2, 1), nn.LeakyReLU(0.2, True),
            nn.Conv2d(16, 32, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Flatten(), nn.Linear(512, 1))

    def forward(self, x):
        return self.main(x).view(-1)


torch.manual_seed(999)
netG, netD = Generator(), Discriminator()
optG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
optD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
fixed_z = torch.randn(16, NZ, 1, 1)
bce = nn.BCEWithLogitsLoss()
step = 0

if os.path.exists(CKPT):
    saved = torch.load(CKPT)
    netG.load_state_dict(saved["netG"])
    netD.load_state_dict(saved["netD"])
    optG.load_state_dict(saved["optG"])
    fixed_z = saved["fixed_z"]
    torch.set_rng_state(saved["rng"])
    step = saved["step"]
    print("continuing at step", step)


def save():
    torch.save({"netG": netG.state_dict(), "netD": netD.state_dict(), "optG": optG.state_dict(),
                "fixed_z": fixed_z, "rng": torch.get_rng_state(), "step": step}, CKPT)


last = step + STEPS
while step < last:
    real = real_icons(BS)
    fake = netG(torch.randn(BS, NZ, 1, 1))

    netD.zero_grad()
    lossD = bce(netD(real), torch.full((BS,), 0.9)) + bce(netD(fake.detach()), torch.zeros(BS))
    lossD.backward()
    optD.step()

    netG.zero_grad()
    lossG = bce(netD(fake), torch.ones(BS))
    lossG.backward()
    optG.step()

    step += 1
    if step % 20 == 0:
        netG.eval()
        with torch.no_grad():
            mean_px = netG(fixed_z).mean().item()
        netG.train()
        print(f"step {step} D {lossD.item():.3f} G {lossG.item():.3f} mean pixel {mean_px:.3f}")
        save()
