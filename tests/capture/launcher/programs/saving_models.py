"""Whole models are saved, copied and compiled for elsewhere, as it is done in many tutorials."""

import copy
import io
import pickle
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(7)
x = torch.randn(1200, 20)
y = (x @ torch.randn(20, 4)).argmax(1)
train = DataLoader(TensorDataset(x[:1000], y[:1000]), batch_size=50, shuffle=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(20, 64)
        self.out = nn.Linear(64, 4)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x)))


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
best, best_loss = None, float("inf")
for epoch in range(10):
    for batch_x, batch_y in train:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch_x), batch_y)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        held_out = nn.functional.cross_entropy(model(x[1000:]), y[1000:]).item()
    if held_out < best_loss:
        best, best_loss = copy.deepcopy(model), held_out
    file = io.BytesIO()
    torch.save(model, file)
    print(f"epoch {epoch} loss {loss.item()!r} val_loss {held_out!r} bytes {len(file.getvalue())}")
again = pickle.loads(pickle.dumps(best))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    scripted = torch.jit.script(best)
with torch.no_grad():
    assert again(x[:5]).equal(scripted(x[:5]))
