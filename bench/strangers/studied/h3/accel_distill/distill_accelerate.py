import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset


class SmallCNN(nn.Module):
    def __init__(self, ch=10):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, ch, 3, padding=1), nn.BatchNorm2d(ch), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(ch, 2 * ch, 3, padding=1), nn.BatchNorm2d(2 * ch), nn.ReLU(),
        )
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(2 * ch, 10)

    def forward(self, x):
        return self.fc(self.drop(self.conv(x).mean((2, 3))))


def loaders(batch_size, labelled=300):
    X, y = load_digits(return_X_y=True)
    X = torch.tensor(X / 16.0, dtype=torch.float32).view(-1, 1, 8, 8)
    y = torch.tensor(y)
    xtr, xte, ytr, yte = train_test_split(X, y, test_size=0.3, random_state=0)
    known = torch.arange(len(ytr)) < labelled
    train = TensorDataset(xtr, ytr, known)
    return (DataLoader(train, batch_size=batch_size, shuffle=True, drop_last=True),
            DataLoader(TensorDataset(xte, yte), batch_size=256))


@torch.no_grad()
def follow(mean_net, net, decay):
    for a, b in zip(mean_net.state_dict().values(), net.state_dict().values()):
        if a.is_floating_point():
            a.mul_(decay).add_(b, alpha=1 - decay)
        else:
            a.copy_(b)


def training_function(config):
    set_seed(config["seed"])
    accelerator = Accelerator(gradient_accumulation_steps=1)
    train_loader, test_loader = loaders(config["batch_size"])
    net = SmallCNN()
    mean_net = copy.deepcopy(net)
    mean_net.requires_grad_(False)
    optimizer = torch.optim.AdamW(net.parameters(), lr=config["lr"])
    net, optimizer, train_loader, test_loader = accelerator.prepare(net, optimizer, train_loader, test_loader)

    for epoch in range(config["epochs"]):
        net.train()
        mean_net.train()
        ramp = min(1.0, (epoch + 1) / config["ramp_epochs"])
        for images, targets, known in train_loader:
            with accelerator.accumulate(net):
                logits = net(images + 0.05 * torch.randn_like(images))
                with torch.no_grad():
                    goal = mean_net(images).softmax(-1)
                nll = F.cross_entropy(logits, targets, reduction="none")
                supervised = (nll * known).sum() / known.sum().clamp(min=1)
                consistency = F.mse_loss(logits.softmax(-1), goal)
                accelerator.backward(supervised + config["consistency"] * ramp * consistency)
                optimizer.step()
                optimizer.zero_grad()
            follow(mean_net, accelerator.unwrap_model(net), config["decay"])
        net.eval()
        right = total = 0
        for images, targets in test_loader:
            with torch.no_grad():
                guess = net(images).argmax(-1)
            guess, targets = accelerator.gather_for_metrics((guess, targets))
            right += (guess == targets).sum().item()
            total += len(targets)
        accelerator.print(f"epoch {epoch}: test accuracy {right / total:.3f}")


if __name__ == "__main__":
    training_function(dict(seed=3, lr=4e-3, batch_size=64, epochs=3, ramp_epochs=2, consistency=5.0, decay=0.98))
