"""Galaxy morphology, symmetric test-time augmentation over the dihedral group."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, Subset


def dihedral(x, k):
    x = torch.rot90(x, k % 4, dims=(-2, -1))
    return x.flip(-1) if k >= 4 else x


class Galaxies(Dataset):
    def __init__(self, images, labels, augment=False):
        self.images, self.labels, self.augment = images, labels, augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        x = self.images[i]
        if self.augment:
            x = dihedral(x, int(torch.randint(8, (1,))))
            x = x + 0.05 * torch.randn_like(x)
        return x, self.labels[i]


def render(n):
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, 20), torch.linspace(-1, 1, 20), indexing="ij")
    labels = torch.randint(3, (n,))
    ang = 3.14 * torch.rand(n, 1, 1)
    u, v = xx * ang.cos() + yy * ang.sin(), -xx * ang.sin() + yy * ang.cos()
    ratio = torch.tensor([1.0, 2.2, 4.5])[labels].view(-1, 1, 1)
    img = torch.exp(-4 * (u ** 2 + (ratio * v) ** 2)) + 0.25 * torch.randn(n, 20, 20)
    return img.unsqueeze(1), labels


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Conv2d(1, 12, 5, 2, 2), nn.BatchNorm2d(12), nn.ReLU(),
                               nn.Conv2d(12, 24, 3, 2, 1), nn.BatchNorm2d(24), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2))
        self.c = nn.Linear(24 * 25, 3)

    def forward(self, x):
        return self.c(self.f(x))


@torch.no_grad()
def evaluate(model, loader, tta=False):
    was_training = model.training
    model.eval()
    correct = 0
    for x, y in loader:
        views = range(8) if tta else [0]
        p = torch.stack([model(dihedral(x, k)).softmax(-1) for k in views]).mean(0)
        correct += (p.argmax(-1) == y).sum().item()
    model.train(was_training)
    return correct / len(loader.dataset)


torch.manual_seed(0)
images, labels = render(900)
perm = torch.randperm(900).tolist()
# two views of the same tensors: only the training one is augmented
train_ds = Subset(Galaxies(images, labels, augment=True), perm[:600])
val_ds = Subset(Galaxies(images, labels), perm[600:])
train_dl = DataLoader(train_ds, 32, shuffle=True)
val_dl = DataLoader(val_ds, 100)

model = Net()
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
model.train()
for epoch in range(5):
    for x, y in train_dl:
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"epoch {epoch} loss {loss.item():.3f} val {evaluate(model, val_dl):.3f} val+tta {evaluate(model, val_dl, tta=True):.3f}")
