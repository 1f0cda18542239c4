import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from cohort import read_cohort, split_by_patient


def collate(scans):
    x = torch.stack([torch.from_numpy(s.volume) for s in scans])
    return x, torch.tensor([s.lesion for s in scans])


class VolumeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv3d(1, 8, 3, padding=1), nn.InstanceNorm3d(8, affine=True), nn.ReLU(),
            nn.Conv3d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool3d(1), nn.Flatten(),
        )
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(16, 2)

    def forward(self, x):
        return self.fc(self.drop(self.conv(x)))


@torch.no_grad()
def validate(model, loader):
    model.eval()
    correct = seen = 0
    for x, y in loader:
        correct += (model(x).argmax(1) == y).sum().item()
        seen += len(y)
    return correct / max(seen, 1)


def main(n_patients=60, epochs=5, patience=3):
    torch.manual_seed(9)
    train, val = split_by_patient(read_cohort(patients=n_patients), n_patients, 0.2, seed=9)
    train_dl = DataLoader(train, batch_size=24, shuffle=True, collate_fn=collate)
    val_dl = DataLoader(val, batch_size=24, collate_fn=collate)
    model = VolumeNet()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    best, best_state, waited = -1.0, None, 0
    for epoch in range(epochs):
        model.train()
        for x, y in train_dl:
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        acc = validate(model, val_dl)
        print(f"epoch {epoch} loss {loss.item():.4f} val acc {acc:.3f}")
        if acc > best:
            best, best_state, waited = acc, copy.deepcopy(model.state_dict()), 0
        else:
            waited += 1
            if waited == patience:
                print("stopping early")
                break
    model.load_state_dict(best_state)
    print(f"kept model with val acc {best:.3f}")


if __name__ == "__main__":
    main()
