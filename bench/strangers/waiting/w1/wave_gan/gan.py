import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(42)
nz, length, batch_size, num_epochs = 8, 32, 128, 12
device = "cuda:0" if torch.cuda.is_available() else "cpu"

# one-period sine waves with random phase and amplitude
t = torch.linspace(0, 2 * math.pi, length)
phase = torch.rand(4096, 1) * 2 * math.pi
amp = 0.5 + 0.4 * torch.rand(4096, 1)
dataset = TensorDataset(amp * torch.sin(t + phase))
dataloader = DataLoader(dataset, batch_size=batch_size, shuffle=True, drop_last=True)


def weights_init(m):
    if isinstance(m, nn.Linear):
        nn.init.kaiming_normal_(m.weight, a=0.2)
        nn.init.zeros_(m.bias)


netG = nn.Sequential(
    nn.Linear(nz, 64), nn.BatchNorm1d(64), nn.ReLU(True),
    nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(True),
    nn.Linear(128, length), nn.Tanh(),
).to(device)
netD = nn.Sequential(
    nn.Linear(length, 128), nn.LeakyReLU(0.2, inplace=True),
    nn.Linear(128, 64), nn.LeakyReLU(0.2, inplace=True),
    nn.Linear(64, 1),
).to(device)
netG.apply(weights_init)
netD.apply(weights_init)

criterion = nn.BCEWithLogitsLoss()
fixed_noise = torch.randn(64, nz, device=device)
optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))

G_losses, D_losses = [], []
for epoch in range(num_epochs):
    for i, (real,) in enumerate(dataloader):
        real = real.to(device)
        b = real.size(0)
        ones = torch.ones(b, 1, device=device)
        zeros = torch.zeros(b, 1, device=device)

        # (1) D: maximize log(D(x)) + log(1 - D(G(z)))
        netD.zero_grad()
        out_real = netD(real)
        errD_real = criterion(out_real, ones)
        errD_real.backward()
        fake = netG(torch.randn(b, nz, device=device))
        out_fake = netD(fake.detach())
        errD_fake = criterion(out_fake, zeros)
        errD_fake.backward()
        errD = errD_real + errD_fake

        # (2) G: maximize log(D(G(z)))
        netG.zero_grad()
        errG = criterion(netD(fake), ones)
        errG.backward()
        netD.zero_grad()

        # update both nets together
        optimizerD.step()
        optimizerG.step()

        G_losses.append(errG.item())
        D_losses.append(errD.item())

    netG.eval()
    with torch.no_grad():
        wave = netG(fixed_noise)
    netG.train()
    rough = (wave[:, 1:] - wave[:, :-1]).abs().mean().item()
    print("[%d/%d] Loss_D %.4f Loss_G %.4f D(x) %.3f D(G(z)) %.3f roughness %.3f" % (
        epoch, num_epochs, errD.item(), errG.item(),
        out_real.sigmoid().mean().item(), out_fake.sigmoid().mean().item(), rough))
