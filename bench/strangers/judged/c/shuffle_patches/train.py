import torch, math
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

# ShuffleNet-style net on the 8x8 digits. 학습용 예제

torch.manual_seed(77)
digits = load_digits()
imgs = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
labs = torch.tensor(digits.target)
tr_i, te_i = train_test_split(range(len(labs)), test_size=0.25, random_state=77, stratify=labs)


def channel_shuffle(x, groups):
    b, c, h, w = x.shape
    x = x.view(b, groups, c // groups, h, w).transpose(1, 2)
    return x.view(b, c, h, w)


class ShuffleUnit(nn.Module):
    def __init__(self, c, groups=4):
        super().__init__()
        self.g = groups
        mid = c // 2
        self.squeeze = nn.Conv2d(c, mid, 1, groups=groups, bias=False)
        self.bn1 = nn.BatchNorm2d(mid)
        self.depth = nn.Conv2d(mid, mid, 3, padding=1, groups=mid, bias=False)
        self.bn2 = nn.BatchNorm2d(mid)
        self.expand = nn.Conv2d(mid, c, 1, groups=groups, bias=False)
        self.bn3 = nn.BatchNorm2d(c)

    def forward(self, x):
        y = torch.relu(self.bn1(self.squeeze(x)))
        y = channel_shuffle(y, self.g)
        y = self.bn2(self.depth(y))
        y = self.bn3(self.expand(y))
        return torch.relu(x + y)


net = nn.Sequential(
    nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(),
    ShuffleUnit(32), nn.MaxPool2d(2), ShuffleUnit(32),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
steps = 6 * math.ceil(len(tr_i) / 64)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.1, total_steps=steps)
ce = nn.CrossEntropyLoss(label_smoothing=0.05)

tr_i, te_i = torch.tensor(tr_i), torch.tensor(te_i)
for ep in range(6):
    net.train()
    for sel in tr_i[torch.randperm(len(tr_i))].split(64):
        opt.zero_grad()
        l = ce(net(imgs[sel]), labs[sel])
        l.backward()
        opt.step(); sched.step()
    print(ep, l.item())

net.eval()
with torch.inference_mode():
    acc = (net(imgs[te_i]).argmax(1) == labs[te_i]).float().mean()
print('test acc', acc.item())
