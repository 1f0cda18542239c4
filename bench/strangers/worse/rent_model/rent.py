"""Linear rent model: standardised flat features -> standardised rent."""
import numpy as np
import torch

SEED = 0
LR = 0.002
EPOCHS = 60
BATCH = 32


def flats(n=4000, d=12):
    rng = np.random.default_rng(31)
    x = rng.normal(size=(n, d))
    w = rng.normal(size=d)
    y = x @ w / np.linalg.norm(w) + 1.1 * rng.normal(size=n)
    x, y = (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()
    return torch.tensor(x).float(), torch.tensor(y).float().unsqueeze(1)


def main():
    torch.manual_seed(SEED)
    x, y = flats()
    x_train, y_train, x_test, y_test = x[:3000], y[:3000], x[3000:], y[3000:]
    model = torch.nn.Linear(x.shape[1], 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, weight_decay=1e-4)
    loss_fn = torch.nn.MSELoss()
    for epoch in range(1, EPOCHS + 1):
        train_loss = 0.0
        for idx in torch.randperm(len(x_train)).split(BATCH):
            loss = loss_fn(model(x_train[idx]), y_train[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            train_loss += loss.item() * len(idx) / len(x_train)
        if epoch % 3 == 0:
            with torch.no_grad():
                test = loss_fn(model(x_test), y_test).item()
            print(f"epoch {epoch} train_mse {train_loss:.4f} test_mse {test:.4f} "
                  f"test_r2 {1 - test / y_test.var(unbiased=False).item():.4f}")


if __name__ == "__main__":
    main()
