import torch
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader

from stream import CollisionStream


class Classifier(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)
        self.net = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.net((x - self.mean) / self.std).squeeze(1)


def collect(stream):
    xs, ys = zip(*stream)
    return torch.stack([torch.from_numpy(x) for x in xs]), torch.tensor(ys)


def main():
    torch.manual_seed(1)
    calib_x, _ = collect(CollisionStream(seed=500, per_epoch=2000))
    val_x, val_y = collect(CollisionStream(seed=900, per_epoch=2000))
    stream = CollisionStream(seed=1, per_epoch=4800)
    loader = DataLoader(stream, batch_size=64, num_workers=2)

    model = Classifier(calib_x.mean(0), calib_x.std(0))
    opt = torch.optim.Adadelta(model.parameters(), lr=1.0)
    for epoch in range(4):
        stream.epoch = epoch
        model.train()
        for x, y in loader:
            opt.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            auc = roc_auc_score(val_y.numpy(), model(val_x).numpy())
        print(f"epoch {epoch} loss {loss.item():.4f} val AUC {auc:.4f}")


if __name__ == "__main__":
    main()
