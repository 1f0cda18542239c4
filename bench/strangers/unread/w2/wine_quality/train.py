import argparse

import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--learning-rate", type=float, default=0.05)
parser.add_argument("--max-grad-norm", type=float, default=1.0)
parser.add_argument("--hidden-size", type=int, default=64)
parser.add_argument("--num-epochs", type=int, default=30)
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--random-seed", type=int, default=0)
arguments = parser.parse_args()
torch.manual_seed(arguments.random_seed)


class GradientLimiter:
    """Keeps the overall gradient norm of a model within a budget."""

    def __init__(self, model: nn.Module, budget: float):
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.budget = budget / sum(p.numel() for p in self.parameters)

    def __call__(self):
        squares = [p.grad.pow(2).sum() for p in self.parameters if p.grad is not None]
        norm = torch.stack(squares).sum().sqrt()
        factor = (self.budget / (norm + 1e-12)).clamp(max=1.0)
        for p in self.parameters:
            if p.grad is not None:
                p.grad.mul_(factor)
        return norm.item()


wine = load_wine()
features_train, features_test, labels_train, labels_test = train_test_split(
    wine.data, wine.target, test_size=0.3, stratify=wine.target, random_state=arguments.random_seed
)
feature_mean, feature_std = features_train.mean(0), features_train.std(0)


def to_dataset(features, labels):
    standardised = torch.tensor((features - feature_mean) / feature_std, dtype=torch.float32)
    return TensorDataset(standardised, torch.tensor(labels))


training_loader = DataLoader(to_dataset(features_train, labels_train), batch_size=arguments.batch_size, shuffle=True)
test_loader = DataLoader(to_dataset(features_test, labels_test), batch_size=64)

network = nn.Sequential(
    nn.Linear(13, arguments.hidden_size), nn.ReLU(),
    nn.Linear(arguments.hidden_size, arguments.hidden_size), nn.ReLU(),
    nn.Linear(arguments.hidden_size, 3),
)
optimizer = torch.optim.SGD(network.parameters(), lr=arguments.learning_rate, momentum=0.9)
limit_gradients = GradientLimiter(network, arguments.max_grad_norm)
criterion = nn.CrossEntropyLoss()

for epoch in range(arguments.num_epochs):
    network.train()
    total_loss = 0.0
    for batch_features, batch_labels in training_loader:
        optimizer.zero_grad()
        loss = criterion(network(batch_features), batch_labels)
        loss.backward()
        gradient_norm = limit_gradients()
        optimizer.step()
        total_loss += loss.item() * len(batch_labels)
    if (epoch + 1) % 5 == 0:
        network.eval()
        with torch.no_grad():
            correct = sum((network(x).argmax(1) == y).sum().item() for x, y in test_loader)
        print(f"epoch {epoch + 1}: loss {total_loss / len(labels_train):.4f} "
              f"gradient norm {gradient_norm:.3f} accuracy {correct / len(labels_test):.3f}")
