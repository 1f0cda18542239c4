"""Now and then a token lies beyond the vocabulary: the run fails at some batch of some epoch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
VOCABULARY = 1000


class TextClassifier(nn.Module):
    def __init__(self, vocab_size, embed_dim, num_classes):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        self.fc = nn.Linear(embed_dim, num_classes)

    def forward(self, x):
        x = self.embedding(x)
        x = x.mean(dim=1)
        return self.fc(x)


labels = torch.randint(0, 5, (1600,))
tokens = 200 * labels[:, None] + torch.randint(0, 200, (1600, 20))
tokens[777, 3] = VOCABULARY  # from a tokenizer that knows one word more
train_loader = DataLoader(TensorDataset(tokens, labels), batch_size=16, shuffle=True)
model = TextClassifier(VOCABULARY, 32, 5)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(3):
    for step, (input_ids, target) in enumerate(train_loader):
        optimizer.zero_grad()
        loss = criterion(model(input_ids), target)
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
