import torch
from torch import nn

from pipeline import Stream
from records import CLASSES, DIM, read_shards, to_tensors

torch.manual_seed(0)
BATCH = 32
train_ds = Stream(read_shards(400, seed=1)).map(to_tensors).shuffle(buffer_size=2 * BATCH, seed=0).batch(BATCH)
valid_ds = Stream(read_shards(60, seed=2)).map(to_tensors).batch(100)

model = nn.Sequential(nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, CLASSES))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(8):
    model.train()
    losses = []
    for x, y in train_ds:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        pairs = [(model(x).argmax(1) == y).float() for x, y in valid_ds]
    print(f"epoch {epoch}: loss first batch {losses[0]:.3f} mean {sum(losses) / len(losses):.3f} "
          f"valid acc {torch.cat(pairs).mean():.3f}")
