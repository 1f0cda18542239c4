import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from layers import RandomRotation, RandomTranslation, Rescaling


class KerasLike:
    """compile / fit / evaluate, because everybody in the team is used to them"""

    def __init__(self, *layers):
        self.net = nn.Sequential(*layers)

    def compile(self, optimizer, loss):
        self.optimizer = optimizer(self.net.parameters())
        self.loss = loss

    def fit(self, x, y, epochs, batch_size, validation_data):
        history = []
        for epoch in range(epochs):
            self.net.train()
            total = 0.0
            for idx in torch.randperm(len(x)).split(batch_size):
                self.optimizer.zero_grad()
                loss = self.loss(self.net(x[idx]), y[idx])
                loss.backward()
                self.optimizer.step()
                total += loss.item() * len(idx)
            val_loss, val_acc = self.evaluate(*validation_data)
            history.append(val_acc)
            print(f"Epoch {epoch + 1}/{epochs} - loss: {total / len(x):.4f} "
                  f"- val_loss: {val_loss:.4f} - val_accuracy: {val_acc:.4f}")
        return history

    @torch.no_grad()
    def evaluate(self, x, y):
        self.net.eval()
        out = self.net(x)
        return self.loss(out, y).item(), (out.argmax(1) == y).float().mean().item()


torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
images = torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8)
labels = torch.tensor(labels)
tr, te = train_test_split(torch.arange(len(labels)).numpy(), test_size=0.25, random_state=0, stratify=labels.numpy())

model = KerasLike(
    Rescaling(1 / 16),
    RandomRotation(0.12),
    RandomTranslation(0.15),
    nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.Flatten(),
    nn.Linear(48 * 16, 64), nn.ReLU(), nn.Linear(64, 10),
)
model.compile(optimizer=lambda p: torch.optim.Adam(p, lr=2e-3), loss=nn.CrossEntropyLoss())
model.fit(images[tr], labels[tr], epochs=8, batch_size=32, validation_data=(images[te], labels[te]))
for _ in range(2):
    print("evaluate:", model.evaluate(images[te], labels[te]))
