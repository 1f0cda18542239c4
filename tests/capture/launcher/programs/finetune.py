"""Fine-tuning: a pretrained backbone stays frozen and in eval mode, only the head learns."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU()
        )
        self.head = nn.Sequential(nn.Dropout(0.1), nn.Linear(64, 5))

    def forward(self, x):
        return self.head(self.backbone(x))


torch.manual_seed(15)
digits = load_digits()
x = torch.tensor(digits.data / 16.0, dtype=torch.float32)
y = torch.tensor(digits.target)

model = Classifier()
model.backbone.requires_grad_(False)
chosen = y < 5
loader = DataLoader(TensorDataset(x[chosen], y[chosen]), batch_size=50, shuffle=True)
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=5e-3)
for epoch in range(12):
    model.train()
    model.backbone.eval()
    for batch_x, batch_y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch_x), batch_y)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item()!r}")
