import sys

import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score
from torch.utils.data import DataLoader, TensorDataset

from features import CARDINALITY, CATEGORICAL, NUMERIC, read_log, simulate_log
from model import CTRNet


def tensors(X, y):
    return TensorDataset(torch.from_numpy(X), torch.from_numpy(y))


def main():
    torch.manual_seed(0)
    if len(sys.argv) == 3:
        train, test = tensors(*read_log(sys.argv[1])), tensors(*read_log(sys.argv[2]))
    else:
        train, test = tensors(*simulate_log(20000, 0)), tensors(*simulate_log(4000, 1))
    loader = DataLoader(train, batch_size=256, shuffle=True)

    model = CTRNet([CARDINALITY[c] for c in CATEGORICAL], len(NUMERIC))
    bce = nn.BCEWithLogitsLoss()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(4):
        model.train()
        for x, y in loader:
            opt.zero_grad()
            loss = bce(model(x), y)
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            scores = model(test.tensors[0])
        print(f"epoch {epoch} loss {loss.item():.4f} AUC {roc_auc_score(test.tensors[1].numpy(), scores.numpy()):.4f}")


if __name__ == "__main__":
    main()
