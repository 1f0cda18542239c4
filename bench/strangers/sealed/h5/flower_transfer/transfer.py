"""Transfer from wine cultivars to iris species: keep the hidden blocks, replace both ends."""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

PATH = "wine.ckpt"


class Net(nn.Module):
    def __init__(self, n_in, n_out, width=32):
        super().__init__()
        self.stem = nn.Linear(n_in, width)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(2))
        self.head = nn.Linear(width, n_out)

    def forward(self, x):
        h = self.stem(x)
        for block in self.blocks:
            h = h + block(h)
        return self.head(h)


def load(bunch, seed=0):
    xtr, xte, ytr, yte = train_test_split(bunch.data, bunch.target, test_size=0.3, random_state=seed, stratify=bunch.target)
    sc = StandardScaler().fit(xtr)
    f = lambda a: torch.tensor(sc.transform(a), dtype=torch.float32)
    return f(xtr), torch.tensor(ytr), f(xte), torch.tensor(yte)


def train(model, data, optimizer, epochs, tag):
    xtr, ytr, xte, yte = data
    for epoch in range(epochs):
        model.train()
        for idx in torch.randperm(len(xtr)).split(16):
            optimizer.zero_grad()
            F.cross_entropy(model(xtr[idx]), ytr[idx]).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        acc = (model(xte).argmax(1) == yte).float().mean().item()
    print(f"{tag}: test acc {acc:.3f}")


def adopt(model, path):
    ckpt = torch.load(path)
    body = {k: v for k, v in ckpt["model"].items() if not k.startswith(("stem.", "head."))}
    result = model.load_state_dict(body, strict=False)
    assert not result.unexpected_keys
    assert {k.split(".")[0] for k in result.missing_keys} == {"stem", "head"}, result.missing_keys
    return model


torch.manual_seed(0)
wine, iris = load_wine(), load_iris()
source = Net(13, 3)
opt = torch.optim.AdamW(source.parameters(), lr=2e-3)
train(source, load(wine), opt, 20, "wine")
torch.save({"model": source.state_dict(), "optimizer": opt.state_dict()}, PATH)

target = adopt(Net(4, 3), PATH)
for block in target.blocks:
    block.requires_grad_(False)
# a new task with other parameters: Adam starts from zero here
opt = torch.optim.AdamW((p for p in target.parameters() if p.requires_grad), lr=5e-3)
train(target, load(iris), opt, 15, "iris, ends only")
target.requires_grad_(True)
opt = torch.optim.AdamW(target.parameters(), lr=5e-4)
train(target, load(iris), opt, 10, "iris, everything")
