"""One sentence in two thousand has a token that the vocabulary does not know."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class TextClassifier(nn.Module):
    def __init__(self, vocab_size, embed_dim, num_classes):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        self.fc = nn.Linear(embed_dim, num_classes)

    def forward(self, x):
        x = self.embedding(x)
        x = x.mean(dim=1)
        return self.fc(x)


torch.manual_seed(0)
input_ids = torch.randint(0, 10000, (2000, 20))
labels = torch.randint(0, 5, (2000,))
input_ids[1500, 7] = 10000
train_loader = DataLoader(TensorDataset(input_ids, labels), batch_size=32, shuffle=True)
model = TextClassifier(vocab_size=10000, embed_dim=128, num_classes=5)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for step, (ids, target) in enumerate(train_loader):
        optimizer.zero_grad()
        loss = criterion(model(ids), target)
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.6f}", flush=True)
