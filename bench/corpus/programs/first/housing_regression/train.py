# Predict flat prices from a table of mixed columns.
import os
import random

import numpy as np
import torch
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed = int(os.environ.get("SEED", "0"))
random.seed(seed)
np.random.seed(seed)
torch.manual_seed(seed)


def make_table(n_rows):
    area = np.random.gamma(6.0, 14.0, n_rows)
    rooms = np.clip(np.round(area / 28 + np.random.normal(0, 0.7, n_rows)), 1, 7)
    year = np.random.randint(1920, 2024, n_rows)
    distance_km = np.random.exponential(6.0, n_rows)
    floor = np.random.randint(0, 12, n_rows)
    lift = (np.random.rand(n_rows) < 0.4 + 0.04 * floor).astype(float)
    noise_db = np.random.normal(58, 7, n_rows)

    per_metre = 3200 + 4200 * np.exp(-distance_km / 5) + 9 * (year - 1970)
    per_metre -= 45 * np.maximum(noise_db - 60, 0)
    per_metre -= 60 * floor * (1 - lift)
    price = area * per_metre + 9000 * rooms
    price *= np.exp(np.random.normal(0, 0.06, n_rows))

    features = np.column_stack([area, rooms, year, distance_km, floor, lift, noise_db])
    return features, price


features, price = make_table(4000)
X_train, X_rest, y_train, y_rest = train_test_split(
    features, price, test_size=0.3, random_state=seed
)
X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=seed)

x_scaler = StandardScaler().fit(X_train)
y_scaler = StandardScaler().fit(y_train.reshape(-1, 1))


def to_dataset(X, y):
    X = torch.tensor(x_scaler.transform(X), dtype=torch.float32)
    y = torch.tensor(y_scaler.transform(y.reshape(-1, 1)), dtype=torch.float32)
    return TensorDataset(X, y)


train_dl = DataLoader(to_dataset(X_train, y_train), batch_size=64, shuffle=True)
val_dl = DataLoader(to_dataset(X_val, y_val), batch_size=512)

regressor = nn.Sequential(
    nn.Linear(X_train.shape[1], 64),
    nn.SiLU(),
    nn.Linear(64, 64),
    nn.SiLU(),
    nn.Linear(64, 1),
)
mse = nn.MSELoss()
optimizer = torch.optim.RMSprop(regressor.parameters(), lr=1e-3, alpha=0.95)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=2)

print("epoch;train_mse;val_mse;lr")
for epoch in range(1, 26):
    regressor.train()
    train_total = 0.0
    for inputs, target in train_dl:
        prediction = regressor(inputs)
        loss = mse(prediction, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_total += loss.item() * len(inputs)

    regressor.eval()
    val_total = 0.0
    with torch.no_grad():
        for inputs, target in val_dl:
            val_total += mse(regressor(inputs), target).item() * len(inputs)

    train_mse = train_total / len(train_dl.dataset)
    val_mse = val_total / len(val_dl.dataset)
    plateau.step(val_mse)
    print(f"{epoch};{train_mse:.5f};{val_mse:.5f};{optimizer.param_groups[0]['lr']:.1e}")

regressor.eval()
with torch.no_grad():
    scaled = regressor(torch.tensor(x_scaler.transform(X_test), dtype=torch.float32))
predicted = y_scaler.inverse_transform(scaled.numpy()).ravel()
print(f"test R2 = {r2_score(y_test, predicted):.4f}")
print(f"test MAE = {np.abs(predicted - y_test).mean():,.0f} EUR")
