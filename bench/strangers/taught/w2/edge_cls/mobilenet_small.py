"""Small MobileNetV2-like classifier for the camera on the sorting belt."""
import torch
import torch.nn as nn


class MBConv(nn.Module):
    def __init__(self, cin, cout, expand=4, stride=1):
        super().__init__()
        mid = cin * expand
        self.use_res = stride == 1 and cin == cout
        self.expand = nn.Sequential(
            nn.Conv2d(cin, mid, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU6(inplace=True))
        self.depthwise = nn.Sequential(
            nn.Conv2d(mid, mid, 3, stride, 1, groups=mid, bias=False), nn.BatchNorm2d(mid), nn.ReLU6(inplace=True))
        self.project = nn.Sequential(
            nn.Conv2d(mid, cout, 1, bias=False), nn.BatchNorm2d(cin))

    def forward(self, x):
        y = self.project(self.depthwise(self.expand(x)))
        return x + y if self.use_res else y


class BeltNet(nn.Module):
    PLAN = [(16, 1, 1), (24, 2, 2), (40, 2, 2)]  # channels, repeats, stride

    def __init__(self, n_classes):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU6(inplace=True))
        blocks, c = [], 16
        for cout, reps, stride in self.PLAN:
            for r in range(reps):
                blocks.append(MBConv(c, cout, stride=stride if r == 0 else 1))
                c = cout
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(c, n_classes))

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


class FakeBelt(torch.utils.data.IterableDataset):
    """Colored blobs, one color per class; replaced by the camera stream in production."""

    def __init__(self, n, n_classes, seed):
        self.n, self.k, self.seed = n, n_classes, seed
        g = torch.Generator().manual_seed(99)
        self.colors = torch.rand(n_classes, 3, 1, 1, generator=g)

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed)
        for _ in range(self.n):
            c = int(torch.randint(self.k, (1,), generator=g))
            img = torch.rand(3, 64, 64, generator=g) * 0.3
            r, q = torch.randint(8, 40, (2,), generator=g).tolist()
            img[:, r:r + 16, q:q + 16] += self.colors[c]
            yield img * 2 - 1, c


def train(epochs=2, n_classes=4, lr=2e-3):
    torch.manual_seed(0)
    model = BeltNet(n_classes)
    opt = torch.optim.RMSprop(model.parameters(), lr=lr, momentum=0.9)
    ce = nn.CrossEntropyLoss(label_smoothing=0.1)
    for epoch in range(epochs):
        model.train()
        loader = torch.utils.data.DataLoader(FakeBelt(512, n_classes, epoch), batch_size=32)
        for step, (x, y) in enumerate(loader):
            loss = ce(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 8 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.3f}")
    return model


if __name__ == "__main__":
    m = train()
    m.eval()
    torch.jit.save(torch.jit.trace(m, torch.randn(1, 3, 64, 64)), "/tmp/beltnet.pt")
