"""Risk stratification, supplementary experiment 2 (balanced cohort)."""
import torch
import torch.nn.functional as F
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from torch.utils.data import DataLoader, TensorDataset

from data import get_splits
from model import RiskNet

CFG = dict(seed=3, balance=True, test_size=0.25, epochs=25, lr=2e-3, batch_size=64)


def as_dataset(split):
    x, y = split
    return TensorDataset(torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y))


@torch.no_grad()
def evaluate(model, dataset):
    model.eval()
    x, y = dataset.tensors
    prob = model(x).softmax(-1)[:, 1]
    return {"auc": roc_auc_score(y, prob), "bacc": balanced_accuracy_score(y, prob > 0.5)}


def main():
    torch.manual_seed(CFG["seed"])
    train, test = map(as_dataset, get_splits(CFG))
    model = RiskNet(train.tensors[0].shape[1])
    opt = torch.optim.Adam(model.parameters(), lr=CFG["lr"])
    loader = DataLoader(train, CFG["batch_size"], shuffle=True)
    for epoch in range(1, CFG["epochs"] + 1):
        model.train()
        running = 0.0
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            running += loss.item() * len(y)
        if epoch % 5 == 0:
            m = evaluate(model, test)
            print(f"{epoch:3d} loss {running / len(train):.4f} test auc {m['auc']:.3f} bacc {m['bacc']:.3f}")


if __name__ == "__main__":
    main()
