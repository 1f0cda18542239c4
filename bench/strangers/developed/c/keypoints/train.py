# %%
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(4)
torch.manual_seed(4)
S = 24

# %% synthetic "finger tip" images: a bright tip at the end of a dim line
def sample(n):
    img = rng.normal(0, 0.1, (n, 1, S, S)).astype(np.float32)
    tip = rng.uniform(4, S - 5, (n, 2)).astype(np.float32)
    base = rng.uniform(0, S - 1, (n, 2))
    yy, xx = np.mgrid[:S, :S]
    for i in range(n):
        for a in np.linspace(0, 1, 25):
            y, x = (base[i] * (1 - a) + tip[i] * a).round().astype(int)
            img[i, 0, y, x] = 0.5
        img[i, 0] += np.exp(-((yy - tip[i, 0]) ** 2 + (xx - tip[i, 1]) ** 2) / 3)
    return torch.from_numpy(img), torch.from_numpy(tip)


train_ds, test_ds = TensorDataset(*sample(320)), TensorDataset(*sample(80))

# %%
class HeatmapNet(nn.Module):
    """Fully convolutional; one heatmap per keypoint."""

    def __init__(self, width=16):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 5, padding=2), nn.ReLU(),
            nn.Conv2d(width, width, 5, padding=2), nn.ReLU(),
            nn.Conv2d(width, 1, 1),
        )

    def forward(self, x):
        return self.body(x).squeeze(1)


def decode(heat):
    """heatmap (B, H, W) -> (B, 2) pixel coordinates (y, x)"""
    flat = heat.flatten(1).argmax(dim=1)
    return torch.stack([flat // heat.size(2), flat % heat.size(2)], dim=1).float()


# %%
net = HeatmapNet()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
pixel_loss = nn.MSELoss()

for epoch in range(4):
    net.train()
    total = 0.0
    for img, tip in DataLoader(train_ds, batch_size=32, shuffle=True):
        opt.zero_grad()
        coords = decode(net(img)).requires_grad_()
        loss = pixel_loss(coords / S, tip / S)
        loss.backward()
        opt.step()
        total += loss.item() * len(img)
    net.eval()
    with torch.no_grad():
        dist = torch.cat([(decode(net(img)) - tip).norm(dim=1) for img, tip in DataLoader(test_ds, 80)])
    print(f"epoch {epoch}: loss {total / len(train_ds):.4f}, mean pixel error {dist.mean():.2f}")
