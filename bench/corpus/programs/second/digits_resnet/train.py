import argparse
import os
import random

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

from data import get_loaders
from resnet import TinyResNet

parser = argparse.ArgumentParser(description="residual net on 8x8 digits")
parser.add_argument("--epochs", type=int, default=7)
parser.add_argument("--batch-size", type=int, default=48)
parser.add_argument("--max-lr", type=float, default=0.08)
parser.add_argument("--momentum", type=float, default=0.9)
parser.add_argument("--wd", type=float, default=5e-4)
parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED", "0")))
parser.add_argument("--out", default="checkpoint.pt")
args = parser.parse_args()

device = "cuda" if torch.cuda.is_available() else "cpu"
random.seed(args.seed)
np.random.seed(args.seed)
torch.manual_seed(args.seed)

trainloader, testloader = get_loaders(args.batch_size)
net = TinyResNet().to(device)
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=args.max_lr, momentum=args.momentum,
                      weight_decay=args.wd, nesterov=True)
scheduler = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=args.max_lr, epochs=args.epochs,
                                          steps_per_epoch=len(trainloader), pct_start=0.3)


def train(epoch):
    net.train()
    train_loss, correct, total = 0.0, 0, 0
    for inputs, targets in trainloader:
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        scheduler.step()  # one cycle: once per batch

        train_loss += loss.item()
        correct += outputs.argmax(1).eq(targets).sum().item()
        total += targets.size(0)
    print("Epoch: %d | Train Loss: %.3f | Train Acc: %.2f%% (%d/%d) | lr %.4f"
          % (epoch, train_loss / len(trainloader), 100.0 * correct / total, correct, total,
             scheduler.get_last_lr()[0]))


def test(epoch):
    net.eval()
    test_loss, correct, total = 0.0, 0, 0
    with torch.no_grad():
        for inputs, targets in testloader:
            inputs, targets = inputs.to(device), targets.to(device)
            outputs = net(inputs)
            test_loss += criterion(outputs, targets).item()
            correct += outputs.argmax(1).eq(targets).sum().item()
            total += targets.size(0)
    acc = 100.0 * correct / total
    print("          | Test  Loss: %.3f | Test  Acc: %.2f%% (%d/%d)"
          % (test_loss / len(testloader), acc, correct, total))
    return acc


best_acc = 0.0
for epoch in range(args.epochs):
    train(epoch)
    acc = test(epoch)
    if acc > best_acc:
        best_acc = acc
        torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(),
                    "acc": acc, "epoch": epoch}, args.out)

print("Finished. Final Acc: %.2f%%  (best %.2f%%)" % (acc, best_acc))
