import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from engine import Engine


def tensors(x, y):
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.long))


def main():
    torch.manual_seed(3)
    x, y = load_wine(return_X_y=True)
    xa, xb, ya, yb = train_test_split(x, y, test_size=0.3, random_state=3, stratify=y)
    mu, sd = xa.mean(0), xa.std(0)
    loaders = {
        "train": DataLoader(tensors((xa - mu) / sd, ya), batch_size=16, shuffle=True),
        "valid": DataLoader(tensors((xb - mu) / sd, yb), batch_size=64),
    }
    model = nn.Sequential(nn.Linear(13, 32), nn.LeakyReLU(), nn.Dropout(0.1), nn.Linear(32, 3))
    Engine(model, torch.optim.Adam(model.parameters(), lr=5e-3), loaders).fit(10)


if __name__ == "__main__":
    main()
