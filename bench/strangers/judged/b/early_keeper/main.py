import numpy as np
import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from callbacks import KeepBest, Printer
from learner import Learner


def tensors():
    x, y = load_diabetes(return_X_y=True)
    x_fit, x_rest, y_fit, y_rest = train_test_split(x, y, test_size=0.5, random_state=0)
    x_val, x_test, y_val, y_test = train_test_split(x_rest, y_rest, test_size=0.5, random_state=0)
    mx, sx, my, sy = x_fit.mean(0), x_fit.std(0), y_fit.mean(), y_fit.std()
    pack = lambda x, y: TensorDataset(torch.tensor((x - mx) / sx, dtype=torch.float32),
                                      torch.tensor((y - my) / sy, dtype=torch.float32)[:, None])
    return pack(x_fit, y_fit), pack(x_val, y_val), pack(x_test, y_test)


def main():
    np.random.seed(0)
    torch.manual_seed(0)
    fit, val, test = tensors()
    net = nn.Sequential(nn.Linear(10, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
    learner = Learner(net, (DataLoader(fit, 16, shuffle=True), DataLoader(val, 64)), lr=2e-3,
                      callbacks=[Printer(), KeepBest(patience=5)])
    learner.fit(60)
    print(f"val again  {learner.one_pass(learner.val_dl, False):.4f}")
    print(f"test       {learner.one_pass(DataLoader(test, 64), False):.4f}")


if __name__ == "__main__":
    main()
