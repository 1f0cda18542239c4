import sys
import tempfile

import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

from kit import Trainer


def make_data():
    x, y = load_wine(return_X_y=True)
    xa, xb, ya, yb = train_test_split(x, y, test_size=0.3, random_state=0, stratify=y)
    s = StandardScaler().fit(xa)
    t = lambda a: torch.tensor(s.transform(a), dtype=torch.float32)
    return {"train": (t(xa), torch.tensor(ya)), "val": (t(xb), torch.tensor(yb))}


def make_trainer(folder):
    model = nn.Sequential(nn.Linear(13, 48), nn.ReLU(), nn.Dropout(0.2), nn.Linear(48, 3))
    return Trainer(model, make_data(), total_steps=400, lr=0.05, folder=folder)


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()
    torch.manual_seed(0)
    # the cluster gives us slots of 200 steps
    make_trainer(folder).resume_if_possible().run(until=200)
    make_trainer(folder).resume_if_possible().run()
