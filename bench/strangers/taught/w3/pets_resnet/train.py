import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, random_split
from torchvision import datasets, models, transforms
from tqdm import tqdm

parser = argparse.ArgumentParser()
parser.add_argument("--data", default="./data/pets")
parser.add_argument("--epochs", type=int, default=15)
parser.add_argument("--bs", type=int, default=64)
parser.add_argument("--lr", type=float, default=1e-3)
args = parser.parse_args()

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(2023)

mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
tfm = transforms.Compose([
    transforms.RandomResizedCrop(224, scale=(0.3, 1.0)),
    transforms.RandomHorizontalFlip(),
    transforms.ColorJitter(0.3, 0.3, 0.3),
    transforms.RandomRotation(20),
    transforms.ToTensor(),
    transforms.Normalize(mean, std),
])

full = datasets.ImageFolder(args.data, transform=tfm)
n_val = int(0.2 * len(full))
train_set, val_set = random_split(full, [len(full) - n_val, n_val])
print(len(train_set), "train,", len(val_set), "val,", len(full.classes), "classes")

train_loader = DataLoader(train_set, batch_size=args.bs, shuffle=True, num_workers=4, pin_memory=True)
val_loader = DataLoader(val_set, batch_size=args.bs, shuffle=False, num_workers=4, pin_memory=True)

model = models.resnet34(weights=models.ResNet34_Weights.IMAGENET1K_V1)
model.fc = nn.Linear(model.fc.in_features, len(full.classes))
model = model.to(device)

criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)

best_acc = 0.0
for epoch in range(args.epochs):
    model.train()
    running_loss, correct, seen = 0.0, 0, 0
    for images, labels in tqdm(train_loader, desc=f"epoch {epoch}"):
        images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        logits = model(images)
        loss = criterion(logits, labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item() * labels.size(0)
        correct += (logits.argmax(1) == labels).sum().item()
        seen += labels.size(0)
    scheduler.step()

    model.eval()
    v_correct = 0
    with torch.no_grad():
        for images, labels in val_loader:
            images, labels = images.to(device), labels.to(device)
            v_correct += (model(images).argmax(1) == labels).sum().item()
    val_acc = v_correct / len(val_set)
    print(f"loss {running_loss / seen:.4f} acc {correct / seen:.4f} val_acc {val_acc:.4f}")
    if val_acc > best_acc:
        best_acc = val_acc
        torch.save(model.state_dict(), "pets_best.pth")
print("best", best_acc)
