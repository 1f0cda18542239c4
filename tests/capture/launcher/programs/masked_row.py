"""An empty sentence: every key of its attention is masked."""

import torch
from torch import nn

torch.manual_seed(0)
tokens = torch.randint(1, 50, (400, 12))
lengths = torch.randint(4, 13, (400,))
lengths[333] = 0
labels = (tokens[:, 0] > 25).long()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.query, self.key, self.value = nn.Linear(32, 32), nn.Linear(32, 32), nn.Linear(32, 32)
        self.head = nn.Linear(32, 2)

    def forward(self, tokens, mask):
        x = self.embedding(tokens)
        scores = self.query(x) @ self.key(x).transpose(1, 2) / 32**0.5
        scores = scores.masked_fill(mask[:, None, :] == 0, float("-inf"))
        attended = torch.softmax(scores, dim=-1) @ self.value(x)
        return self.head(attended.mean(1))


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(6):
    for start in range(0, 400, 20):
        part = slice(start, start + 20)
        mask = (torch.arange(12) < lengths[part, None]).long()
        loss = nn.functional.cross_entropy(model(tokens[part], mask), labels[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.6f}")
