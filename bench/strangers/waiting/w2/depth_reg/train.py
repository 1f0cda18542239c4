import torch
import torch.nn as nn
from sklearn.datasets import load_diabetes, make_friedman2
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

from net import StochasticDepthNet


class Standardize:
    def __init__(self, t):
        self.mean, self.std = t.mean(0), t.std(0)

    def __call__(self, t):
        return (t - self.mean) / self.std


def get_data(name):
    X, y = load_diabetes(return_X_y=True) if name == "diabetes" else make_friedman2(2000, noise=50.0, random_state=0)
    Xa, Xb, ya, yb = train_test_split(X, y, test_size=0.25, random_state=0)
    Xa, Xb, ya, yb = (torch.as_tensor(v).float() for v in (Xa, Xb, ya, yb))
    sx, sy = Standardize(Xa), Standardize(ya)
    return sx(Xa), sy(ya), sx(Xb), sy(yb)


def main(name="friedman", epochs=30):
    torch.manual_seed(0)
    Xa, ya, Xb, yb = get_data(name)
    model = StochasticDepthNet()
    model.eval()
    with torch.no_grad():
        model(Xa[:2])
    loader = DataLoader(TensorDataset(Xa, ya), batch_size=64, shuffle=True, drop_last=True)
    loss_fn = nn.GaussianNLLLoss()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(1, epochs + 1):
        model.train()
        for x, y in loader:
            mean, log_var = model(x)
            loss = loss_fn(mean, y, log_var.exp())
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch % 10 == 0:
            model.eval()
            with torch.no_grad():
                mean, log_var = model(Xb)
            r2 = 1 - (mean - yb).pow(2).sum() / (yb - yb.mean()).pow(2).sum()
            print(f"epoch {epoch} nll {loss.item():.3f} test R2 {r2.item():.3f} sigma {(log_var / 2).exp().mean().item():.3f}")


if __name__ == "__main__":
    main()
