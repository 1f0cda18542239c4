import copy
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split

PHASES = ("train", "val")


def make_dataset(n=500, bands=6, steps=12, crops=5):
    g = torch.Generator().manual_seed(10)
    peak = torch.linspace(2, 9, crops)
    y = torch.randint(crops, (n,), generator=g)
    t = torch.arange(steps).float()
    curve = torch.exp(-(t[None] - peak[y][:, None] - torch.randn(n, 1, generator=g) * 0.6) ** 2 / 6)
    mix = torch.randn(bands, generator=g)
    return TensorDataset(curve[:, :, None] * mix + 0.3 * torch.randn(n, steps, bands, generator=g), y)


class TempCNN(nn.Module):
    def __init__(self, bands=6, crops=5, width=32):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(bands, width, 3, padding=1), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.2),
            nn.Conv1d(width, width, 3, padding=1), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.2),
        )
        self.classifier = nn.Linear(width * 12, crops)

    def forward(self, x):
        return self.classifier(self.features(x.transpose(1, 2)).flatten(1))


def grad_context(phase):
    return torch.set_grad_enabled(phase != "valid")


def train_model(model, dataloaders, sizes, criterion, optimizer, scheduler, num_epochs):
    since = time.time()
    best_weights, best_acc = copy.deepcopy(model.state_dict()), 0.0
    for epoch in range(num_epochs):
        for phase in PHASES:
            model.train(phase == "train")
            running_loss, running_corrects = 0.0, 0
            for inputs, labels in dataloaders[phase]:
                optimizer.zero_grad()
                with grad_context(phase):
                    outputs = model(inputs)
                    loss = criterion(outputs, labels)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
                running_loss += loss.item() * inputs.size(0)
                running_corrects += (outputs.argmax(1) == labels).sum().item()
            if phase == "train":
                scheduler.step()
            epoch_acc = running_corrects / sizes[phase]
            print(f"{epoch} {phase} loss {running_loss / sizes[phase]:.4f} acc {epoch_acc:.4f}")
            if phase == "val" and epoch_acc > best_acc:
                best_acc, best_weights = epoch_acc, copy.deepcopy(model.state_dict())
    print(f"{time.time() - since:.1f}s, best val acc {best_acc:.4f}")
    model.load_state_dict(best_weights)
    return model


if __name__ == "__main__":
    torch.manual_seed(10)
    parts = dict(zip(PHASES, random_split(make_dataset(), [400, 100])))
    loaders = {p: DataLoader(d, batch_size=25, shuffle=p == "train") for p, d in parts.items()}
    net = TempCNN()
    sgd = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    train_model(net, loaders, {p: len(d) for p, d in parts.items()}, nn.CrossEntropyLoss(), sgd,
                torch.optim.lr_scheduler.StepLR(sgd, 3, 0.3), num_epochs=5)
