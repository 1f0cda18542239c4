import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from augment import MixUp


def soft_cross_entropy(logits, soft):
    return -(soft * logits.log_softmax(1)).sum(1).mean()


class Experiment:
    def __init__(self, seed=0):
        torch.manual_seed(seed)
        x, y = load_digits(return_X_y=True)
        x = torch.tensor(x / 16.0, dtype=torch.float32)
        y = torch.tensor(y)
        a, b = train_test_split(range(len(y)), test_size=0.3, stratify=y, random_state=seed)
        self.fit_x, self.fit_y, self.val_x, self.val_y = x[a], y[a], x[b], y[b]
        self.mixup = MixUp(0.4, 10)
        self.net = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=3e-3)

    def epoch(self):
        self.net.train()
        total = 0.0
        for idx in torch.randperm(len(self.fit_x)).split(64):
            x, soft = self.mixup(self.fit_x[idx], self.fit_y[idx])
            self.opt.zero_grad()
            loss = soft_cross_entropy(self.net(x), soft)
            loss.backward()
            self.opt.step()
            total += loss.item() * len(idx)
        return total / len(self.fit_x)

    @torch.no_grad()
    def validate(self):
        self.net.eval()
        logits = self.net(self.val_x)
        return (logits.argmax(1) == self.val_y).float().mean().item()


if __name__ == "__main__":
    exp = Experiment()
    for k in range(12):
        mixed = exp.epoch()
        print(f"epoch {k:2d} mixed loss {mixed:.3f} validation accuracy {exp.validate():.3f}")
