# coding: utf-8
# # Early stopping on digits (exported from notebook)

# In[1]:
import copy
import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

torch.manual_seed(1)

# In[2]:
digits = load_digits()
data = torch.tensor(digits.data / 16.0, dtype=torch.float32)
data = data + 0.25 * torch.randn(data.shape)
labels = torch.tensor(digits.target)
idx = np.arange(len(data))
tr, te = train_test_split(idx, test_size=600, random_state=0, stratify=digits.target)
tr, va = train_test_split(tr, test_size=300, random_state=0)

X_train, y_train = data[tr], labels[tr]
X_val, y_val = data[va], labels[va]
X_test, y_test = data[te], labels[te]
print(X_train.shape, X_val.shape, X_test.shape)


# In[3]:
def batches(X, y, size, shuffle=False):
    order = torch.randperm(len(X)) if shuffle else torch.arange(len(X))
    for chunk in order.split(size):
        yield X[chunk], y[chunk]


net = nn.Sequential(
    nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.3),
    nn.Linear(128, 64), nn.ReLU(),
    nn.Linear(64, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)

# In[4]:
best, best_state, waited, patience = -1.0, None, 0, 5
history = {"loss": [], "val_acc": []}

for epoch in range(40):
    net.train()
    running = 0.0
    for xb, yb in batches(X_train, y_train, 32, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(net(xb), yb)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(xb)

    net.eval()
    correct = seen = 0
    with torch.no_grad():
        for X_val, y_val in batches(X_val, y_val, 64):
            correct += (net(X_val).argmax(1) == y_val).sum().item()
            seen += len(y_val)
    val_acc = correct / seen
    history["loss"].append(running / len(X_train))
    history["val_acc"].append(val_acc)
    print(f"epoch {epoch:2d}  loss {history['loss'][-1]:.3f}  val acc {val_acc:.3f}  ({seen} samples)")

    if val_acc > best:
        best, best_state, waited = val_acc, copy.deepcopy(net.state_dict()), 0
    else:
        waited += 1
        if waited >= patience:
            print("early stop")
            break

# In[5]:
net.load_state_dict(best_state)
with torch.no_grad():
    test_acc = (net(X_test).argmax(1) == y_test).float().mean().item()
print(f"best val {best:.3f}  test {test_acc:.3f}")
