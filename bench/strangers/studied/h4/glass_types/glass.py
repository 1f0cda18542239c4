"""Coursework 2: neural network for glass types. Own mini-batch class instead of DataLoader."""
import numpy as np
import torch
import torch.nn as nn


def generate_glass(per_type, seed, types=6, oxides=9):
    means = np.random.default_rng(55).normal(0, 1.0, (types, oxides))
    rng = np.random.default_rng(seed)
    xs = [means[k] + rng.normal(0, 0.9, (per_type, oxides)) for k in range(types)]
    ys = [np.full(per_type, k) for k in range(types)]
    return np.concatenate(xs).astype("float32"), np.concatenate(ys)


class MiniBatches:
    def __init__(self, x, y, size, seed=0):
        self.x, self.y, self.size = x, y, size
        self.index = np.arange(len(x))
        self.rng = np.random.default_rng(seed)

    def new_epoch(self):
        self.rng.permutation(self.index)
        return self

    def __iter__(self):
        for a in range(0, len(self.index), self.size):
            pick = self.index[a:a + self.size]
            yield torch.from_numpy(self.x[pick]), torch.from_numpy(self.y[pick])

    def __len__(self):
        return -(-len(self.index) // self.size)


class GlassNet(nn.Module):
    def __init__(self, oxides=9, types=6):
        super().__init__()
        self.fc1 = nn.Linear(oxides, 40)
        self.fc2 = nn.Linear(40, 40)
        self.fc3 = nn.Linear(40, types)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.fc3(x)


def confusion(net, x, y, types=6):
    with torch.no_grad():
        guess = net(torch.from_numpy(x)).argmax(1).numpy()
    table = np.zeros((types, types), dtype=int)
    np.add.at(table, (y, guess), 1)
    return table


def main():
    torch.manual_seed(1)
    x, y = generate_glass(160, seed=1)
    x_test, y_test = generate_glass(40, seed=2)
    mean, std = x.mean(0), x.std(0)
    x, x_test = (x - mean) / std, (x_test - mean) / std

    batches = MiniBatches(x, y, size=32)
    net = GlassNet()
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(1, 13):
        total = 0.0
        for xb, yb in batches.new_epoch():
            optimiser.zero_grad()
            loss = criterion(net(xb), yb)
            loss.backward()
            optimiser.step()
            total += loss.item()
        table = confusion(net, x_test, y_test)
        print(f"epoch {epoch:2d}   train loss {total / len(batches):.3f}   test accuracy {np.trace(table) / table.sum():.3f}")
    print(table)


if __name__ == "__main__":
    main()
