import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from plantbox.trainer import ClassifierTrainer

torch.manual_seed(0)
wine = load_wine()
x_tr, x_va, y_tr, y_va = train_test_split(wine.data, wine.target, test_size=0.3, random_state=0, stratify=wine.target)
mean, std = x_tr.mean(0), x_tr.std(0)


def loader(x, y, **kw):
    return DataLoader(TensorDataset(torch.tensor((x - mean) / std, dtype=torch.float32), torch.tensor(y)), **kw)


net = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))
trainer = ClassifierTrainer(net, torch.optim.Adam(net.parameters(), lr=5e-3), nn.CrossEntropyLoss())
trainer.fit(loader(x_tr, y_tr, batch_size=16, shuffle=True), loader(x_va, y_va, batch_size=32), epochs=8)
