import torch
from torch import nn
from torch.utils.data import DataLoader

from eyes import GAZE, EyeCrops
from transforms import Compose, Jitter, Mirror, Shift

torch.manual_seed(0)
augment = Compose(Shift(1), Mirror(0.5), Jitter(0.2))
train = DataLoader(EyeCrops(800, 1, augment), batch_size=32, shuffle=True)
valid = DataLoader(EyeCrops(240, 2), batch_size=80)

net = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
    nn.Flatten(), nn.Linear(32 * 49, 64), nn.ReLU(), nn.Linear(64, len(GAZE)))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(8):
    net.train()
    running = 0.0
    for img, gaze in train:
        opt.zero_grad()
        loss = loss_fn(net(img), gaze)
        loss.backward()
        opt.step()
        running += loss.item() * len(gaze)

    net.eval()
    per_gaze = torch.zeros(len(GAZE), 2)
    with torch.no_grad():
        for img, gaze in valid:
            ok = net(img).argmax(1) == gaze
            for k in range(len(GAZE)):
                per_gaze[k, 0] += ok[gaze == k].sum()
                per_gaze[k, 1] += (gaze == k).sum()
    rates = {g: round((per_gaze[k, 0] / per_gaze[k, 1]).item(), 2) for k, g in enumerate(GAZE)}
    print(f"epoch {epoch} loss {running / len(train.dataset):.3f} valid {per_gaze[:, 0].sum() / per_gaze[:, 1].sum():.3f} {rates}")
