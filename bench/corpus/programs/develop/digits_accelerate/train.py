"""Digits with Accelerate, two convolutions and gradient accumulation off."""

import os

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def get_loaders(batch_size):
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1)
    images = images / 16.0
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels))
    images, labels = images[order], labels[order]
    train = TensorDataset(images[:1500], labels[:1500])
    test = TensorDataset(images[1500:], labels[1500:])
    train_dl = DataLoader(train, batch_size=batch_size, shuffle=True, drop_last=True)
    test_dl = DataLoader(test, batch_size=128)
    return train_dl, test_dl


def get_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(32 * 4 * 4, 10),
    )


def main():
    accelerator = Accelerator(cpu=True)
    set_seed(int(os.environ.get("SEED", "0")))
    num_epochs = 5
    train_dl, test_dl = get_loaders(batch_size=50)
    model = get_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    lr_scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=4e-3, epochs=num_epochs, steps_per_epoch=len(train_dl)
    )
    loss_function = nn.CrossEntropyLoss()
    model, optimizer, train_dl, test_dl, lr_scheduler = accelerator.prepare(
        model, optimizer, train_dl, test_dl, lr_scheduler
    )
    for epoch in range(num_epochs):
        model.train()
        for step, (images, labels) in enumerate(train_dl):
            outputs = model(images)
            loss = loss_function(outputs, labels)
            accelerator.backward(loss)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
            if step % 15 == 0:
                accelerator.print(f"epoch {epoch} step {step} train_loss {loss.item():.4f}")
        model.eval()
        hits, seen = 0, 0
        for images, labels in test_dl:
            with torch.no_grad():
                predictions = model(images).argmax(dim=-1)
            hits += (predictions == labels).sum().item()
            seen += labels.numel()
        accelerator.print(f"epoch {epoch}: accuracy {100 * hits / seen:.2f}%")


if __name__ == "__main__":
    main()
