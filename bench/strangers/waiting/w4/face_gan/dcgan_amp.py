# DCGAN on 64x64 faces, mixed precision version
import torch
import torch.nn as nn
import torchvision
import torchvision.transforms as tf

nz, ngf, ndf, bs, n_epochs = 100, 64, 64, 128, 25
device = "cuda"
torch.manual_seed(999)

dataset = torchvision.datasets.ImageFolder("data/celeba", transform=tf.Compose([
    tf.Resize(64), tf.CenterCrop(64), tf.ToTensor(), tf.Normalize([0.5] * 3, [0.5] * 3)]))
loader = torch.utils.data.DataLoader(dataset, batch_size=bs, shuffle=True, num_workers=4, drop_last=True)


def weights_init(m):
    if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(m.weight, 0.0, 0.02)
    elif isinstance(m, nn.BatchNorm2d):
        nn.init.normal_(m.weight, 1.0, 0.02)
        nn.init.zeros_(m.bias)


def up(i, o, s=2, p=1):
    return [nn.ConvTranspose2d(i, o, 4, s, p, bias=False), nn.BatchNorm2d(o), nn.ReLU(True)]


def down(i, o):
    return [nn.Conv2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.2, True)]


G = nn.Sequential(*up(nz, ngf * 8, 1, 0), *up(ngf * 8, ngf * 4), *up(ngf * 4, ngf * 2), *up(ngf * 2, ngf),
                  nn.ConvTranspose2d(ngf, 3, 4, 2, 1, bias=False), nn.Tanh()).to(device)
D = nn.Sequential(nn.Conv2d(3, ndf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True),
                  *down(ndf, ndf * 2), *down(ndf * 2, ndf * 4), *down(ndf * 4, ndf * 8),
                  nn.Conv2d(ndf * 8, 1, 4, 1, 0, bias=False), nn.Flatten(0)).to(device)
G.apply(weights_init)
D.apply(weights_init)

bce = nn.BCEWithLogitsLoss()
optD = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
optG = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
scaler = torch.amp.GradScaler("cuda")
fixed = torch.randn(64, nz, 1, 1, device=device)
ones, zeros = torch.ones(bs, device=device), torch.zeros(bs, device=device)

it = 0
for epoch in range(n_epochs):
    for real, _ in loader:
        real = real.to(device, non_blocking=True)

        # discriminator
        optD.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            fake = G(torch.randn(bs, nz, 1, 1, device=device))
            lossD = bce(D(real), 0.9 * ones) + bce(D(fake.detach()), zeros)
        scaler.scale(lossD).backward()
        scaler.step(optD)

        # generator
        optG.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            lossG = bce(D(fake), ones)
        scaler.scale(lossG).backward()
        scaler.step(optG)

        if it % 200 == 0:
            print(f"[{epoch}/{n_epochs}] it {it} D {lossD.item():.3f} G {lossG.item():.3f}")
        it += 1

    with torch.no_grad():
        G.eval()
        grid = torchvision.utils.make_grid(G(fixed).cpu(), normalize=True)
        G.train()
    torchvision.utils.save_image(grid, f"samples/epoch_{epoch:03d}.png")
    torch.save({"G": G.state_dict(), "D": D.state_dict()}, "ckpt.pt")
