import logging
import os
import random

import numpy as np
import torch
from data import ShapesDataset
from model import ShapeNet
from torch import nn, optim
from torch.utils.data import DataLoader

logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
log = logging.getLogger("shapes")

SEED = int(os.environ.get("SEED", "0"))
EPOCHS = 6
BATCH_SIZE = 32
LEARNING_RATE = 0.05


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def train_one_epoch(model, loader, criterion, optimizer, epoch):
    model.train()
    total_loss = 0.0
    for i, (images, labels) in enumerate(loader):
        outputs = model(images)
        loss = criterion(outputs, labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=5.0)
        optimizer.step()
        total_loss += loss.item()
        if i % 10 == 0:
            log.info("epoch %d step %d/%d loss %.4f", epoch, i, len(loader), loss.item())
    return total_loss / len(loader)


@torch.no_grad()
def validate(model, loader, criterion):
    model.eval()
    correct = 0
    losses = []
    for images, labels in loader:
        outputs = model(images)
        losses.append(criterion(outputs, labels).item())
        predicted = outputs.argmax(1)
        correct += (predicted == labels).sum().item()
    return sum(losses) / len(losses), correct / len(loader.dataset)


def main():
    set_seed(SEED)
    train_set = ShapesDataset(1200, seed=SEED + 1)
    val_set = ShapesDataset(300, seed=SEED + 1001)
    train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True, num_workers=0)
    val_loader = DataLoader(val_set, batch_size=100)
    model = ShapeNet()
    log.info("%d parameters", sum(p.numel() for p in model.parameters()))
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=0.9, weight_decay=1e-4)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
    for epoch in range(EPOCHS):
        train_loss = train_one_epoch(model, train_loader, criterion, optimizer, epoch)
        val_loss, val_acc = validate(model, val_loader, criterion)
        scheduler.step()
        log.info(
            "epoch %d train_loss=%.4f val_loss=%.4f val_acc=%.4f lr=%.5f",
            epoch,
            train_loss,
            val_loss,
            val_acc,
            optimizer.param_groups[0]["lr"],
        )
        torch.save(
            {
                "epoch": epoch,
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
            },
            "checkpoint.pt",
        )


if __name__ == "__main__":
    main()
