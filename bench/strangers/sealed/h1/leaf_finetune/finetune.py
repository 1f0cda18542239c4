"""Two stage fine-tuning of a small conv net: head first, then everything."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 8
UNFREEZE_AT = 2
HEAD_LR = 3e-2
FULL_LR = 8e-2


def leaves(n, rng):
    yy, xx = np.mgrid[-1:1:16j, -1:1:16j]
    kind = rng.integers(0, 3, n)
    imgs = np.empty((n, 1, 16, 16), np.float32)
    for i, k in enumerate(kind):
        a, b = rng.uniform(0.35, 0.9, 2)
        r = (xx / a) ** 2 + (yy / b) ** 2
        if k == 1:
            r = np.abs(xx / a) + np.abs(yy / b)
        elif k == 2:
            r = r * (1 + 0.5 * np.cos(5 * np.arctan2(yy, xx)))
        imgs[i, 0] = (r < 1) + rng.normal(0, 0.6, xx.shape)
    return torch.from_numpy(imgs), torch.from_numpy(kind)


class LeafNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.classifier = nn.Linear(24 * 16, 3)

    def forward(self, x):
        return self.classifier(self.backbone(x))


def set_backbone(net, flag):
    for p in net.backbone.parameters():
        p.requires_grad_(flag)


def make_optimizer(net, lr):
    active = [p for p in net.parameters() if p.requires_grad]
    return torch.optim.SGD(active, lr=lr, momentum=0.9, nesterov=True)


def accuracy(net, loader):
    net.eval()
    hit = total = 0
    with torch.no_grad():
        for x, y in loader:
            hit += (net(x).argmax(1) == y).sum().item()
            total += len(y)
    return hit / total


rng = np.random.default_rng(5)
torch.manual_seed(5)
train_dl = DataLoader(TensorDataset(*leaves(700, rng)), batch_size=35, shuffle=True)
valid_dl = DataLoader(TensorDataset(*leaves(300, rng)), batch_size=100)

net = LeafNet()
set_backbone(net, False)
optimizer = make_optimizer(net, HEAD_LR)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
loss_fn = nn.CrossEntropyLoss(label_smoothing=0.05)

for epoch in range(EPOCHS):
    if epoch == UNFREEZE_AT:
        set_backbone(net, True)
        optimizer = make_optimizer(net, FULL_LR)
        print("-- training all layers")
    net.train()
    running = 0.0
    for x, y in train_dl:
        optimizer.zero_grad()
        loss = loss_fn(net(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
    scheduler.step()
    print(f"epoch {epoch + 1}/{EPOCHS} loss {running / len(train_dl):.4f} acc {accuracy(net, valid_dl):.3f} "
          f"lr {scheduler.get_last_lr()[0]:.4f}")
