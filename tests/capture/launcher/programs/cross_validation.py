"""Five folds, a new model and a new optimizer for each."""

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train(x, y):
    model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    criterion = nn.BCEWithLogitsLoss()
    for _ in range(10):
        for batch_x, batch_y in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
            optimizer.zero_grad()
            loss = criterion(model(batch_x).squeeze(1), batch_y)
            loss.backward()
            optimizer.step()
    return model, loss.item()


def main():
    torch.manual_seed(22)
    features, labels = load_breast_cancer(return_X_y=True)
    for fold, (train_index, test_index) in enumerate(StratifiedKFold(5).split(features, labels)):
        scaler = StandardScaler().fit(features[train_index])
        x = torch.tensor(scaler.transform(features), dtype=torch.float32)
        y = torch.tensor(labels, dtype=torch.float32)
        model, loss = train(x[train_index], y[train_index])
        model.eval()
        with torch.inference_mode():
            hits = (model(x[test_index]).squeeze(1) > 0) == y[test_index].bool()
        print(f"fold {fold} loss {loss!r} accuracy {hits.float().mean().item():.4f}")


if __name__ == "__main__":
    main()
